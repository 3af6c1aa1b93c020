"""The Hub protocol, version 2, for English draughts: text lines between two programs. F. Letouzey devised it for Scan.

``server`` lets other programs play against a player of ours; ``engine.players.hub`` plays other programs.
"""
