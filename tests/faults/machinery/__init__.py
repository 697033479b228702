"""What the fault tests are made of: a simulated machine, power cuts, real processes, and the reckoning."""
