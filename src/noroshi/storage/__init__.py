"""Stores: each folder implements some of the ports on one technology."""
