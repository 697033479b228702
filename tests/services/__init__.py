"""Real servers for tests: found or fetched, started when a test first asks, ended with the run (docs/testing.md)."""
