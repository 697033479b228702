"""The machine below: time, chance, keys, metrics and logs, each behind a port."""
