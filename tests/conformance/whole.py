"""Everything that is in a store, to be compared with everything that is in another."""

from typing import Any

from noroshi.care.opening import opened_tables
from noroshi.settings import Settings
from noroshi.storage.turns import Row


async def contents(settings: Settings) -> dict[str, list[Row]]:
    """Every row of every table, in any order; true and false as numbers, columns in the order of their names."""
    async with opened_tables(settings, is_reader=True) as tables:
        found: dict[str, list[Row]] = {}
        for table in await tables.list_tables():
            order = sorted(range(len(table.columns)), key=table.columns.__getitem__)
            rows = [tuple(_plain(row[place]) for place in order) async for row in tables.rows(table, 0)]
            found[table.name] = sorted(rows, key=repr)
        return found


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
