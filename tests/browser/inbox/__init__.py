"""The web component in a real browser."""
