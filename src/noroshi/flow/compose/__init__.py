"""Compose: claimed deliveries go in; the content each person is to get comes out."""
