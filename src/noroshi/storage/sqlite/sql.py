"""The statements and migrations of the SQLite store."""

from noroshi.storage.sql import load_migrations, load_queries

SQL: dict[str, str] = load_queries(__package__)


def migrations() -> list[tuple[int, str, str]]:
    """(number, name, script), in order."""
    return load_migrations(__package__)
