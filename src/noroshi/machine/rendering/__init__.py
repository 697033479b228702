"""Rendering: template versions with plain data go in, content comes out; the child process imports this package
too, so nothing is imported here."""
