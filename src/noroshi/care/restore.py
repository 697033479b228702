"""Restoring: a backup in, a store in restored mode out: whole, and paused until an operator has decided (W31)."""

from pathlib import Path

import msgspec
from msgspec import Struct

from noroshi.bootstrap.back import Back, opened_back
from noroshi.care.archive import Archive
from noroshi.care.copying import Copied, Told, begin_copy, check_counts, copy_tables, told_nothing
from noroshi.care.errors import CareError
from noroshi.care.opening import kept_to_ourselves, opened_tables, proof_of_keys
from noroshi.domain.doubts import Doubts
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, iso
from noroshi.domain.marks import Mark, Restored
from noroshi.domain.records import PauseKind
from noroshi.settings import Settings
from noroshi.storage.postgres.sql import migrations as postgres_migrations
from noroshi.storage.sqlite.sql import migrations as sqlite_migrations
from noroshi.storage.tables import StoreTables

BY = "restore"
"""Who set the pause: `--resume` ends this one and leaves an operator's own."""

_PAGE = 500
_KNOWN = {"sqlite": sqlite_migrations, "postgres": postgres_migrations}


class Restoration(Struct, frozen=True):
    restored: Restored
    copied: list[Copied]


async def restore(settings: Settings, path: Path, tell: Told = told_nothing) -> Restoration:
    """Into an empty store; a second call with the same file goes on where the first was interrupted."""
    archive = Archive(path)
    try:
        if proof_of_keys(settings) != archive.manifest.keys:
            raise CareError(f"the keys in {settings.data} are not those of the backup: no address could be read")
        with kept_to_ourselves(settings):
            async with opened_tables(settings, is_reader=False) as target:
                return await _fill(target, archive, tell)
    finally:
        await archive.close()


async def _fill(target: StoreTables, archive: Archive, tell: Told) -> Restoration:
    await refuse_served(target)
    await _meet_schema(target, archive)
    await begin_copy(target, Mark.RESTORING, archive.manifest.identity)
    copied = await copy_tables(archive, target, tell)
    check_counts(copied)
    await target.migrate()
    now = await target.moment()
    restored = Restored(archive.manifest.taken_at, now)
    await target.commit(
        ("add_pause", DEFAULT_TENANT, now, PauseKind.EVERYTHING, "", now, BY),
        ("put_mark", Mark.RESTORED, msgspec.json.encode(restored).decode(), now),
        ("set_requests_aside", Mark.RESTORED),
        ("fail_doubtful_jobs", iso(now)),
        ("end_doubtful_attempts", iso(now)),
        ("remove_mark", Mark.RESTORING),
    )
    return Restoration(restored, copied)


async def refuse_served(target: StoreTables) -> None:
    if others := await target.others():
        raise CareError(f"{others} other connections of Noroshi use the database: stop its servers and workers first")


async def _meet_schema(target: StoreTables, archive: Archive) -> None:
    """An older backup goes into the schema it was taken from, which is then brought up to date like any other store."""
    kind, schema = archive.kind, await archive.schema()
    newest = _KNOWN[kind]()[-1][0] if kind in _KNOWN else 0
    if schema > newest:
        raise CareError(f"the backup has schema {schema}, this version knows {newest}: restore with a newer one")
    if schema < newest and kind != target.kind:
        raise CareError(f"the backup is of an older schema ({schema}): restore it into {kind} first, then move")
    there = await target.schema()
    if schema < newest and there > schema:
        raise CareError(f"the store is at schema {there}, the backup at {schema}: restore into one not yet made")
    await target.migrate(schema if kind == target.kind else None)


class Review(Struct, frozen=True):
    restored: Restored
    doubts: Doubts
    is_paused: bool


async def review(settings: Settings) -> Review:
    async with opened_back(settings) as back:
        restored = await _restored(back)
        pauses = await back.store.pauses.in_force()
        is_paused = any(pause.kind is PauseKind.EVERYTHING for pause in pauses)
        return Review(restored, await back.store.doubts.review(restored), is_paused)


async def resume(settings: Settings, discard_due_before: Instant | None) -> int:
    """Ends restored mode; answers how many of what was due before that time were withdrawn instead of sent (requests
    that waited then stay dead). Without a time nothing is withdrawn. What was accepted since is never touched."""
    async with opened_back(settings) as back:
        restored = await _restored(back)
        withdrawn = 0
        if discard_due_before is not None:
            before = min(discard_due_before, restored.restored_at)
            while page := await back.store.doubts.discard_due(restored, before, _PAGE):
                withdrawn += page
        await back.store.doubts.resume(BY, with_requests=discard_due_before is None)
        return withdrawn


async def _restored(back: Back) -> Restored:
    value = (await back.store.marks.read()).get(Mark.RESTORED)
    if value is None:
        raise CareError("this store is not in restored mode: there is nothing to review or to resume")
    return msgspec.json.decode(value, type=Restored)
