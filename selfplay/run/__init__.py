"""A run: its configuration, its folder, a copy elsewhere, its status and figures."""
