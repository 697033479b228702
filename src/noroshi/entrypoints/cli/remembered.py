"""Remembered: where the demonstration listens and its key, kept in the data folder for the terminal next to it."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

_FILE = "client.json"


class Remembered(Struct, frozen=True):
    url: str
    key: str


def remember(folder: Path, url: str, key: str) -> None:
    """Readable by its owner alone, and never half written."""
    draft = folder / f"{_FILE}.{os.getpid()}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(Remembered(url, key)))
    draft.replace(folder / _FILE)


def recall(folder: Path) -> Remembered | None:
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError):
        return None
