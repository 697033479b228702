"""Outgoing HTTP: the one client, and the guard before addresses that users gave."""
