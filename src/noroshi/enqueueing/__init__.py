"""Transactional enqueue: a request in, through the caller's own connection, a row of the caller's transaction out."""
