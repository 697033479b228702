"""Copying: the tables of a source in, the same rows in a store out; interrupted at any moment, it goes on where it was.

Rows go in pages, in the order of the source's keys, each page in a commit of its own. So the store holds the first rows
of that order, and how many it holds is the place to go on from.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from noroshi.care.errors import CareError
from noroshi.domain.marks import WHY_NOT_SERVED, Mark
from noroshi.storage.tables import SEEDED, StoreTables, Table, TableSource, in_pages

Told = Callable[[str, int, int], None]
"""Told of progress: table, rows done of all tables, rows of all tables."""


class Copied(Struct, frozen=True):
    table: str
    source: int
    target: int


def told_nothing(_table: str, _done: int, _whole: int) -> None:
    """For whoever does not watch."""


async def begin_copy(target: StoreTables, mark: Mark, identity: str) -> None:
    """Marks an empty store as being filled, or finds that it was this very copy that half filled it."""
    marks = {name: value for name, value, _ in await target.ask("read_marks")}
    if marks.get(mark) == identity:
        return
    for other in marks.keys() & WHY_NOT_SERVED.keys():
        raise CareError(WHY_NOT_SERVED[Mark(other)] + ", or name an empty store")
    tables = await target.list_tables()
    for table in tables:
        if table.name not in SEEDED and await target.count(table):
            raise CareError(f"the store is not empty ({table.name} has rows): name an empty one")
    for table in tables:
        if table.name in SEEDED:
            await target.clear(table)
    await target.commit(("put_mark", mark, identity, await target.moment()))


async def copy_tables(source: TableSource, target: StoreTables, tell: Told) -> list[Copied]:
    """Raises CareError, with nothing written, if the target lacks a table or a column."""
    tables = await source.list_tables()
    _match(tables, await target.list_tables())
    whole = sum([await source.count(table) for table in tables])
    done = 0
    for table in tables:
        there = await target.count(table)
        done += there
        tell(table.name, done, whole)
        async for page in in_pages(source.rows(table, there)):
            await target.put(table, page)
            done += len(page)
            tell(table.name, done, whole)
    await target.finish()
    return [Copied(table.name, await source.count(table), await target.count(table)) for table in tables]


def _match(tables: Sequence[Table], there: Sequence[Table]) -> None:
    columns = {table.name: set(table.columns) for table in there}
    for table in tables:
        if missing := set(table.columns) - columns.get(table.name, set()):
            raise CareError(f"the target has no place for {table.name}.{', '.join(sorted(missing))}")


def check_counts(copied: Sequence[Copied]) -> None:
    different = [f"{one.table} ({one.source} and {one.target})" for one in copied if one.source != one.target]
    if different:
        raise CareError(f"the counts differ: {', '.join(different)}; the target is not to be used")
