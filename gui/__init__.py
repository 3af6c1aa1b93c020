"""The window: state and interaction without pygame, drawing and events with it."""
