"""Stand-ins for the services of others, each a process of its own."""
