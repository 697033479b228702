"""LINE's Messaging API in its own process: it writes down every message it takes before it answers."""
