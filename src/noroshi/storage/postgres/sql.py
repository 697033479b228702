"""The statements and migrations of the PostgreSQL store."""

import re

from noroshi.storage.sql import load_migrations, load_queries

SQL: dict[str, str] = load_queries(__package__)

_COPY = re.compile(r"COPY (?P<table>\w+) \((?P<columns>[^)]+)\) FROM STDIN")


def _read_copies() -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for name, text in SQL.items():
        if (copy := _COPY.fullmatch(text)) is not None:
            found[name] = copy["table"], [column.strip() for column in copy["columns"].split(",")]
    return found


COPIES: dict[str, tuple[str, list[str]]] = _read_copies()
"""The statements that copy rows in, with their table and columns."""


def migrations() -> list[tuple[int, str, str]]:
    """(number, name, script), in order."""
    return load_migrations(__package__)
