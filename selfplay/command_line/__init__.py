"""Commands and common options of the command line; ``crownhead.py`` puts them together."""
