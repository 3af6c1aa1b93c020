"""Drawing and scenes. Only this package, ``gui.app`` and ``gui.menus`` import pygame."""
