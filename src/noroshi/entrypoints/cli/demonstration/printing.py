"""Printing: an address, a key and what can be looked at in; lines to read and to paste out."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.panel import Panel

from noroshi.entrypoints.cli.demonstration.fates import Told

DEFAULT_FOLDER = Path(".noroshi")


def commands(url: str, key: str) -> list[tuple[str, str]]:
    """(what it does, the command)."""
    authorized = f"-H 'Authorization: Bearer {key}'"
    request = '{"user_ids": ["hanako"], "template_id": "welcome", "data": {"shop": "Noroshi"}}'
    return [
        ("Send", f"curl -s {url}/api/v1/notifications {authorized} -d '{request}'"),
        ("What arrived", f"curl -s '{url}/api/v1/caught?user_id=hanako' {authorized}"),
        ("Why it arrived", f"curl -s {url}/api/v1/users/hanako/notifications {authorized}"),
    ]


def print_welcome(console: Console, url: str, key: str, link: str | None) -> None:
    """Commands stand outside the frame and are never broken into lines, so that they can be copied."""
    greeting = f"Noroshi listens on {url}. Messages are caught here; nobody gets them."
    console.print(Panel(greeting, expand=False) if console.is_terminal else greeting, soft_wrap=True)
    if link is not None:
        _print_line(console, f"Console (opens once): {link}")
    _print_line(console, f"Key: {key}")
    for title, command in commands(url, key):
        console.print(f"\n# {title}", style="bold", highlight=False)
        _print_line(console, command)


def print_fates(console: Console, told: Sequence[Told], folder: Path) -> None:
    console.print("\n# One of each fate, in another terminal", style="bold", highlight=False)
    for one in told:
        _print_line(console, f"{explain_command(one.batch_id, folder)}  # {one.title}")
    console.print()


def explain_command(what: str, folder: Path) -> str:
    """As it can be pasted in the folder where the server was started."""
    where = "" if folder.resolve() == DEFAULT_FOLDER.resolve() else f" --folder {quote(str(folder))}"
    return f"{program()} explain {what}{where}"


def program() -> str:
    """How this program is called from here."""
    script = Path(sys.executable).with_name("noroshi")
    if not script.exists():
        return f"{quote(sys.executable)} -m noroshi.entrypoints.cli.main"
    if str(script.parent) in os.environ.get("PATH", "").split(os.pathsep):
        return "noroshi"
    here = Path.cwd()
    return quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


def _print_line(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False)
