"""The embedded store: one SQLite file, one writer with group commit, readers beside it."""
