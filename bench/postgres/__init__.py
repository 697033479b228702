"""The figures on PostgreSQL: the same population, the same counts, beside the peers that use the same server."""
