"""The ways in: API, command line, console, worker; no rule lives here."""
