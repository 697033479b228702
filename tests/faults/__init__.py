"""Fault tests: what is left when something breaks."""
