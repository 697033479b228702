"""LINE: one folder per way of reaching people there."""
