"""Batches in, notifications out: who gets what, when, and why not."""
