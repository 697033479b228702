"""Requests in, batches out: durable before the caller is answered."""
