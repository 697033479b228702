"""Courier: SMS over one JSON call a message."""
