"""The commands of the command line, but for ``play``; ``crownhead.py`` puts them together."""
