"""Drawing and scenes of the board; with ``gui.app`` and ``gui.menus`` the only modules that import pygame."""
