"""Send: attempts go in, outcomes come out; one folder per channel, in it one per provider."""
