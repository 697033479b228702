"""Noroshi: one API through which a product reaches people on every channel."""

__version__ = "0.1.0"
