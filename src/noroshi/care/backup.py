"""Backing up: a store, served or not, in; one file with all its rows of one moment out, read back and found whole."""

import os
from pathlib import Path

from msgspec import Struct

from noroshi import __version__
from noroshi.care.archive import FORMAT, ArchiveDraft, KeptTable, Manifest, verify
from noroshi.care.copying import Told, told_nothing
from noroshi.care.errors import CareError
from noroshi.care.opening import opened_tables, proof_of_keys
from noroshi.domain.marks import WHY_NOT_SERVED, Mark
from noroshi.machine.dice import SystemDice
from noroshi.machine.secrets import FILE_NAME
from noroshi.settings import Settings
from noroshi.storage.tables import StoreTables, in_pages

IDENTITY_BITS = 128


class Backup(Struct, frozen=True):
    path: Path
    manifest: Manifest
    bytes: int
    secrets: Path | None


async def back_up(settings: Settings, path: Path, tell: Told = told_nothing, *, with_secrets: bool = False) -> Backup:
    """The keys go into a file of their own, and only if asked for: who has both can read every address."""
    keys = proof_of_keys(settings)
    secrets = _secrets_path(settings, path) if with_secrets else None
    async with opened_tables(settings, is_reader=True) as tables:
        with ArchiveDraft(path) as draft:
            manifest = await _write(tables, draft, keys, tell)
            await verify(draft.path, path)
            size = draft.keep()
    if secrets is not None:
        _copy_secrets(settings, secrets)
    return Backup(path, manifest, size, secrets)


async def _write(tables: StoreTables, draft: ArchiveDraft, keys: str, tell: Told) -> Manifest:
    taken_at = await tables.moment()
    schema = await tables.schema()
    described = await tables.list_tables()
    if not described:
        raise CareError("the store is empty: `noroshi migrate` makes its tables")
    for name, _, _ in await tables.ask("read_marks"):
        if name in (Mark.RESTORING, Mark.MOVING):
            raise CareError(WHY_NOT_SERVED[Mark(name)])
    counts = [await tables.count(table) for table in described]
    done, whole = 0, sum(counts)
    for table in described:
        tell(table.name, done, whole)
        with draft.table(table.name) as kept:
            async for page in in_pages(tables.rows(table, 0)):
                kept.put(page)
                done += len(page)
                tell(table.name, done, whole)
    manifest = Manifest(
        format=FORMAT,
        identity=f"{SystemDice().bits(IDENTITY_BITS):032x}",
        version=__version__,
        kind=tables.kind,
        schema=schema,
        taken_at=taken_at,
        keys=keys,
        tables=tuple(KeptTable(table, rows) for table, rows in zip(described, counts, strict=True)),
    )
    draft.finish(manifest)
    return manifest


def _secrets_path(settings: Settings, path: Path) -> Path:
    if settings.secret_key is not None:
        raise CareError("the keys come from NOROSHI_SECRET_KEY: there is no file to copy, keep that secret by itself")
    copy = path.with_name(f"{path.name}.{FILE_NAME}")
    if copy.exists():
        raise CareError(f"{copy} is there already: name another file")
    return copy


def _copy_secrets(settings: Settings, copy: Path) -> None:
    text = (settings.data / FILE_NAME).read_bytes()
    with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
