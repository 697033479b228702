"""Layer 1: whole worlds in one thread and virtual time, drawn from a seed, crashed, and checked against the invariants."""
