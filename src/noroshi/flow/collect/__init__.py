"""Notifications in, digests out: nothing is gathered yet."""
