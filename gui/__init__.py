"""The board to play on: state and rules of interaction without pygame; drawing and events with it."""
