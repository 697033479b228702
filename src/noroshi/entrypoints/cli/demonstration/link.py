"""The console's one-time link."""

from noroshi.bootstrap.noroshi import Noroshi


async def console_link(noroshi: Noroshi, url: str) -> str | None:
    """An address that opens the console once, without asking for a key."""
    return f"{url}/console/enter?ticket={await noroshi.write_ticket()}"
