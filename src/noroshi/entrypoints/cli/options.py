"""Options that many commands have, and the settings they come to."""

import os
from pathlib import Path
from typing import Annotated

import typer

from noroshi.settings import Settings, read_settings

FAILED = 1
"""Done, and something is wrong: the doctor found a problem, a notification ended without success."""
CANNOT = 2
"""Cannot be done as asked."""
NOT_NOW = 4
"""Nobody answered, or too much is waiting: the same command may do later."""

DataOption = Annotated[
    Path | None, typer.Option(help="The folder of the store, the keys and the lock (NOROSHI_DATA).", file_okay=False)
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder", help="The data folder of a `serve --dev`, which knows its address and a key (NOROSHI_DATA)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For machines.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe", help="Start although what was accepted may be lost in a crash (NOROSHI_UNSAFE).")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def gathered_settings(
    *,
    host: str | None = None,
    port: int | None = None,
    data: Path | None = None,
    store: str | None = None,
    is_unsafe: bool = False,
) -> Settings:
    """What the options say, else the environment, else noroshi.toml."""
    options = {"host": host, "port": port, "data": data, "store": store, "unsafe": "on" if is_unsafe else None}
    return read_settings(os.environ, {key: str(value) for key, value in options.items() if value is not None})
