"""The HTTP API: one table of routes, served from the desk behind it."""
