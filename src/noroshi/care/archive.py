"""Archives: the tables of a store in, one file out, and back again; the same file for every store.

A zip with `manifest.json` and, for each table, `tables/NAME`: pages of rows in MessagePack, each behind its length.
"""

import os
import zipfile
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec
from msgspec import Struct

from noroshi.care.errors import CareError
from noroshi.domain.instants import Instant
from noroshi.storage.tables import Table
from noroshi.storage.turns import Row

FORMAT = 1
_MANIFEST = "manifest.json"
_LENGTH_BYTES = 4
_QUICK = 1
"""Compression: rows of ids and times gain little from more."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode


class KeptTable(Struct, frozen=True):
    table: Table
    rows: int


class Manifest(Struct, frozen=True):
    """`keys` proves, without revealing any, which keys the addresses were sealed with."""

    format: int
    identity: str
    version: str
    kind: str
    schema: int
    taken_at: Instant
    keys: str
    tables: tuple[KeptTable, ...]

    @property
    def rows(self) -> int:
        return sum(kept.rows for kept in self.tables)


class ArchiveDraft:
    """An archive that is being written, readable for its owner only; it has its name once `keep` says so."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f".{path.name}.part")
        self._final = path
        if path.exists():
            raise CareError(f"{path} is there already: name another file")
        try:
            self.path.unlink(missing_ok=True)
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except OSError as error:
            raise CareError(f"{path} cannot be written: {error.strerror}") from error
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError, ValueError):  # of a draft that nobody will read
            self._zip.close()
        self._file.close()
        self.path.unlink(missing_ok=True)

    def table(self, name: str) -> "_TableDraft":
        return _TableDraft(self._zip.open(zipfile.ZipInfo(f"tables/{name}"), "w", force_zip64=True))

    def finish(self, manifest: Manifest) -> None:
        """On the disk, under its temporary name."""
        self._zip.writestr(zipfile.ZipInfo(_MANIFEST), msgspec.json.encode(manifest))
        self._zip.close()
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self) -> int:
        """Gives it its name, unless another file took that meanwhile; answers its bytes."""
        try:
            self._final.hardlink_to(self.path)
        except FileExistsError as error:
            raise CareError(f"{self._final} is there already: name another file") from error
        folder = os.open(self._final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self.path.stat().st_size


class _TableDraft:
    def __init__(self, member: IO[bytes]) -> None:
        self._member = member

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._member.close()

    def put(self, page: Sequence[Row]) -> None:
        packed = _encode(page)
        self._member.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)


class Archive:
    """Implements storage/tables.py TableSource."""

    def __init__(self, path: Path, shown: Path | None = None) -> None:
        self._shown = shown or path
        try:
            self._zip = zipfile.ZipFile(path)
            self.manifest = msgspec.json.decode(self._zip.read(_MANIFEST), type=Manifest)
        except OSError as error:
            raise CareError(f"{self._shown} cannot be read: {error.strerror}") from error
        except (zipfile.BadZipFile, KeyError, msgspec.DecodeError, zlib.error) as error:
            raise CareError(f"{self._shown} is no backup of Noroshi, or it is cut off") from error
        if self.manifest.format > FORMAT:
            raise CareError(f"{self._shown} was written by a newer version: restore with {self.manifest.version}")

    @property
    def kind(self) -> str:
        return self.manifest.kind

    async def schema(self) -> int:
        return self.manifest.schema

    async def list_tables(self) -> list[Table]:
        return [kept.table for kept in self.manifest.tables]

    async def count(self, table: Table) -> int:
        return next(kept.rows for kept in self.manifest.tables if kept.table == table)

    async def rows(self, table: Table, skip: int) -> AsyncIterator[Row]:
        try:
            with self._zip.open(f"tables/{table.name}") as member:
                while head := member.read(_LENGTH_BYTES):
                    page = _decode(member.read(int.from_bytes(head, "big")))
                    for row in page[skip:]:
                        yield row
                    skip = max(skip - len(page), 0)
        except (zipfile.BadZipFile, KeyError, msgspec.DecodeError, zlib.error, EOFError) as error:
            raise CareError(f"{self._shown} is damaged: {table.name} cannot be read whole") from error

    async def close(self) -> None:
        self._zip.close()


async def verify(path: Path, shown: Path) -> None:
    """Reads everything back: each page against its checksum, each table against its count."""
    archive = Archive(path, shown)
    try:
        for kept in archive.manifest.tables:
            found = 0
            async for _ in archive.rows(kept.table, 0):
                found += 1
            if found != kept.rows:
                raise CareError(f"{shown} is damaged: {kept.table.name} has {found} rows, not {kept.rows}")
    finally:
        await archive.close()
