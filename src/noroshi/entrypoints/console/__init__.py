"""The console: pages for operators, over the same API and with the same keys as everybody else."""
