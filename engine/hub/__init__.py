"""The Hub protocol, version 2, for English draughts: text lines between two programs. F. Letouzey designed it for Scan.

``server`` lets another program use a player of this project; ``engine.players.hub`` uses another program as a player.
"""
