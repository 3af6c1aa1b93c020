"""Actors that play against themselves, and the pools that hold them."""
