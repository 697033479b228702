"""One suite per port: every store passes all of it, and not a line knows which one it runs on."""
