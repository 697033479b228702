"""A disk that fails on demand: SQLite's writes and syncs go in, and come back as errors while the orders say so.

The orders are a file, so that a test can give them to a store in its own process or in another one:
`python -m tests.faults.machinery.failing_disk serve ...` is `noroshi` on such a disk, FAILING_DISK names its orders.
"""

import itertools
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from noroshi.entrypoints.cli.main import app

SYNC = "sync"
WRITE = "write"
FULL = "full"
"""What the orders may say; `full` lets no file grow."""

ORDERS_VARIABLE = "FAILING_DISK"
LAUNCH = (sys.executable, "-m", "tests.faults.machinery.failing_disk")

_numbers = itertools.count(1)


class FailingDisk(apsw.VFS):
    """Connections are opened with `vfs=disk.name`, or without a word if `is_default`. `failures` counts the errors
    given, `used_after_failure` the writes and syncs that were asked for after the first one."""

    def __init__(self, orders: Path, *, is_default: bool = False) -> None:
        self.base = apsw.vfs_names()[0]
        self.name = f"failing-{next(_numbers)}"
        self.failures = 0
        self.used_after_failure = 0
        self._orders = orders
        super().__init__(self.name, self.base, is_default)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unregister()

    def order(self, fault: str | None) -> None:
        """In force from the next write or sync on."""
        if fault is None:
            self._orders.unlink(missing_ok=True)
        else:
            self._orders.with_suffix(".new").write_text(fault)
            self._orders.with_suffix(".new").rename(self._orders)

    def refuse(self, fault: str, code: int) -> None:
        """Raises if the orders say so."""
        self.used_after_failure += self.failures > 0
        if self._orders.exists() and self._orders.read_text() == fault:
            self.failures += 1
            raise apsw.exception_for(code)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.refuse(WRITE, apsw.SQLITE_IOERR_WRITE)
        if offset + len(data) > self.xFileSize():
            self._disk.refuse(FULL, apsw.SQLITE_FULL)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.refuse(SYNC, apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

    def excepthook(self, *_: object) -> bool:
        """SQLite reports the errors; what it cannot report is of no use to anybody."""
        return True


if __name__ == "__main__":
    with FailingDisk(Path(os.environ[ORDERS_VARIABLE]), is_default=True):
        app(prog_name="noroshi")
