"""Files of many games: listing, searching, annotating them. No pygame."""
