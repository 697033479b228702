"""What the flow asks of the world: one small protocol per file."""
