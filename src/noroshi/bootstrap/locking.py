"""A data folder in, the right to serve it alone out."""

import fcntl
import os
from pathlib import Path
from typing import TextIO


class DataLockedError(RuntimeError):
    """Another process serves this data folder; the text says which."""


class DataLock:
    """One serving process per file: a lock on the data folder, released by the kernel when the process ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file: TextIO = (directory / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise DataLockedError(f"{directory} is served by process {holder}; stop it or use another --data") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()
