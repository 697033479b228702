"""Demonstrating: a server that listens in; people, templates and one of each fate in it, and how to look, out."""

from datetime import timedelta
from pathlib import Path

from rich.console import Console

from noroshi import client
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.domain.api_keys import key_id
from noroshi.domain.instants import plus
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.cli.demonstration.fates import bring_about
from noroshi.entrypoints.cli.demonstration.link import console_link
from noroshi.entrypoints.cli.demonstration.printing import print_fates, print_welcome
from noroshi.entrypoints.cli.demonstration.seeding import seed
from noroshi.entrypoints.cli.inbox_link import print_inbox
from noroshi.entrypoints.cli.remembered import recall, remember

_KEY_LIVES = timedelta(days=7)
_A_DAY = timedelta(days=1)


async def demonstrate(noroshi: Noroshi, folder: Path, url: str, console: Console | None = None) -> None:
    """A second time nothing is added: what the first left is shown again."""
    console = console or Console()
    key = await _key(noroshi, folder)
    remember(folder, url, key)
    async with client.Noroshi.inside(build_app(noroshi), key) as inside:
        await seed(inside)
        print_welcome(console, url, key, await console_link(noroshi, url))
        print_fates(console, await bring_about(inside, noroshi.clock, noroshi.caught_channels), folder)
        print_inbox(noroshi, url, key, console)


async def _key(noroshi: Noroshi, folder: Path) -> str:
    """The key of the last time, if it opens the doors for another day."""
    known = recall(folder)
    if known is not None and await _is_good(noroshi, known.key):
        return known.key
    return await noroshi.mint_key("demonstration", list(KeyScope), None, _KEY_LIVES)


async def _is_good(noroshi: Noroshi, key: str) -> bool:
    try:
        caller = await noroshi.gate.authenticate(f"Bearer {key}")
    except ProblemError:
        return False
    kept = await noroshi.keys.find(key_id(key))
    is_lasting = kept is not None and (kept.expires_at is None or kept.expires_at > plus(noroshi.clock.now(), _A_DAY))
    return is_lasting and caller.scopes == frozenset(KeyScope)
