"""SMS, one folder per provider."""
