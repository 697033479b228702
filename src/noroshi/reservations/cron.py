"""`python -m noroshi.reservations.cron`: the environment in, due jobs sent, and what was sent or failed out (L10)."""

from noroshi.entrypoints.cli.reservations import cron

if __name__ == "__main__":
    cron(prog_name="python -m noroshi.reservations.cron")
