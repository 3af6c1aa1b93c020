"""What commands measure: speed, blunders, won endgames, a network as a whole."""
