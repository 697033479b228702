"""Moving: a SQLite file in, the same store on PostgreSQL out; stopped at any moment, it goes on where it was."""

from noroshi.care.backup import IDENTITY_BITS
from noroshi.care.copying import Copied, Told, begin_copy, check_counts, copy_tables, told_nothing
from noroshi.care.errors import CareError
from noroshi.care.opening import kept_to_ourselves, opened_tables, proof_of_keys
from noroshi.care.restore import refuse_served
from noroshi.domain.marks import Mark
from noroshi.machine.dice import SystemDice
from noroshi.settings import Settings
from noroshi.storage.tables import StoreTables


async def move(source: Settings, target: Settings, tell: Told = told_nothing) -> list[Copied]:
    """Offline: while it lasts, and after it, the file is not served; two stores with the same deliveries would send
    each of them twice. The keys stay in the data folder, which both settings name."""
    _check(source, target)
    with kept_to_ourselves(source):
        async with (
            opened_tables(source, is_reader=False) as old,
            opened_tables(target, is_reader=False) as new,
        ):
            return await _carry_over(old, new, tell)


def _check(source: Settings, target: Settings) -> None:
    if source.is_on_postgres or not target.is_on_postgres:
        raise CareError("a move goes from sqlite:///... to postgresql://...; for another way use backup and restore")
    if not source.store_path.exists():
        raise CareError(f"there is no store at {source.store_path}")
    proof_of_keys(source)


async def _carry_over(old: StoreTables, new: StoreTables, tell: Told) -> list[Copied]:
    await old.migrate()
    identity = await _identity_of_move(old)
    await new.migrate()
    await refuse_served(new)
    copied = await _copy_once(old, new, identity, tell)
    await old.commit(("put_mark", Mark.MOVED, identity, await old.moment()), ("remove_mark", Mark.MOVING))
    return copied


async def _copy_once(old: StoreTables, new: StoreTables, identity: str, tell: Told) -> list[Copied]:
    """Nothing, if all had arrived when the move was interrupted: the other store may have sent of it since."""
    marks = {name: value for name, value, _ in await new.ask("read_marks")}
    if marks.get(Mark.ARRIVED) == identity:
        return []
    await begin_copy(new, Mark.MOVING, identity)
    copied = await copy_tables(old, new, tell)
    check_counts(copied)
    await new.commit(("put_mark", Mark.ARRIVED, identity, await new.moment()), ("remove_mark", Mark.MOVING))
    return copied


async def _identity_of_move(old: StoreTables) -> str:
    """That of a move which was begun, or a new one. From here on the file is not served."""
    marks = {name: value for name, value, _ in await old.ask("read_marks")}
    if Mark.MOVED in marks:
        raise CareError("this store was moved already: set NOROSHI_STORE to the other one")
    if Mark.RESTORING in marks or Mark.RESTORED in marks:
        raise CareError("this store is in restored mode: end that first with `noroshi restore --resume`")
    if Mark.MOVING in marks:
        return str(marks[Mark.MOVING])
    identity = f"{SystemDice().bits(IDENTITY_BITS):032x}"
    await old.commit(("put_mark", Mark.MOVING, identity, await old.moment()))
    return identity


async def give_up(source: Settings) -> None:
    """The file may be served again. What was moved so far stays where it is, and cannot be served there unless the
    move had arrived: then whoever gives it up must not serve both."""
    with kept_to_ourselves(source):
        async with opened_tables(source, is_reader=False) as old:
            await old.migrate()
            await old.commit(("remove_mark", Mark.MOVING), ("remove_mark", Mark.MOVED))
