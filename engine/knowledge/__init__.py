"""What players know about endgames, in words: the classics of the books, and rules found in the tables. No torch."""
