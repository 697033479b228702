"""Real servers that die at chosen moments: at every crash point (L2), under load (L3), in a provider's bad hour."""
