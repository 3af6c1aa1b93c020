"""Endgame knowledge in words: standard endings of the textbooks, and rules found in the tables. No torch."""
