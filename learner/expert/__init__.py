"""Learning from games of experts: reading them, learning to predict their moves, and measuring how well."""
