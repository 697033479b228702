"""A disk that forgets: SQLite writes to it through apsw, and after a cut only what was synced is left.

The worst case is the model: of each file the bytes since its last xSync are gone, and a file that was created or
deleted since its folder was last synced is as it was before. As on Linux, the folder is synced by the first xSync of
a new journal or WAL and by an xDelete that asks for it. The WAL index is memory and never survives. With `chance`,
blocks that were not synced survive one by one as the dice fall, which is what a real disk may do instead.
"""

import contextlib
import itertools
import os
import random
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

BLOCK = 4096

_SYNCS_ITS_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_KEPT = _SYNCS_ITS_FOLDER | apsw.SQLITE_OPEN_MAIN_DB

_numbers = itertools.count(1)


class PowerIsOffError(apsw.IOError):
    """The disk answers nobody who knew it before the cut."""


class Inode:
    """A file's bytes, whatever it is called: on the real disk as they are now, here as they were synced."""

    def __init__(self, place: str, synced_size: int) -> None:
        self.place = place
        self.synced_size = synced_size
        self.before: dict[int, bytes] = {}

    def save(self, file: apsw.VFSFile, start: int, end: int) -> None:
        """Remembers the synced blocks in a range that is about to change."""
        end = min(end, self.synced_size)
        if start >= end:
            return
        for block in range(start // BLOCK, (end - 1) // BLOCK + 1):
            if block not in self.before:
                # Through `file`: another descriptor of ours, once closed, would take all its locks away.
                self.before[block] = _read_whole(file, block * BLOCK, min(BLOCK, self.synced_size - block * BLOCK))

    def sync(self, size: int) -> None:
        self.before.clear()
        self.synced_size = size

    def fall_back(self, chance: random.Random | None) -> None:
        """Makes the real file what survived. Nobody may have it open."""
        with Path(self.place).open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            survivor = None if chance is None else chance.getrandbits
            for block, content in self.before.items():
                if survivor is None or survivor(1):
                    os.pwrite(file.fileno(), content, block * BLOCK)
            if survivor is None or survivor(1):
                file.truncate(self.synced_size)
            else:
                for start in range(self.synced_size, size, BLOCK):
                    if survivor(1):
                        os.pwrite(file.fileno(), bytes(min(BLOCK, size - start)), start)
        self.sync(os.path.getsize(self.place))


class ForgetfulDisk(apsw.VFS):
    """Connections are opened with `vfs=disk.name`, or without a word if `is_default`.

    `cut` may be called from any thread and in the middle of anything; `restore` after whoever used the disk is
    gone or has come to rest: it closes the connections that are left, and power is back."""

    def __init__(self, *, is_default: bool = False) -> None:
        self.base = apsw.vfs_names()[0]
        self.name = f"forgetful-{next(_numbers)}"
        self.guard = threading.RLock()
        self.is_off = False
        self.cuts = 0
        self.syncs = 0
        self._now: dict[str, Inode] = {}
        self._durable: dict[str, Inode] = {}
        self._connections: list[apsw.Connection] = []
        super().__init__(self.name, self.base, is_default)
        apsw.connection_hooks.append(self._notice)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_connections()
        apsw.connection_hooks.remove(self._notice)
        self.unregister()

    def cut(self) -> None:
        """The power fails now: every open file refuses from here on."""
        with self.guard:
            self.is_off = True
            self.cuts += 1

    def restore(self, chance: random.Random | None = None) -> None:
        """The power is back, and the files are what survived."""
        assert self.is_off
        self._close_connections()
        with self.guard:
            self._forget_folder_changes()
            for path, inode in self._now.items():
                inode.fall_back(chance)
                Path(path + "-shm").unlink(missing_ok=True)
            self.is_off = False

    def refuse_if_off(self, cut: int) -> None:
        """`cut`: how many there had been when the asker was opened."""
        if self.is_off or cut != self.cuts:
            raise PowerIsOffError("the power is off")

    def sync_folder(self) -> None:
        dropped = set(self._durable.values()) - set(self._now.values())
        self._durable = dict(self._now)
        for inode in dropped:
            os.unlink(inode.place)

    # what SQLite asks

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        with self.guard:
            self.refuse_if_off(self.cuts)
            if name is None or not flags[0] & _KEPT:
                return apsw.VFSFile(self.base, name, flags)
            path = name.filename() if isinstance(name, apsw.URIFilename) else name
            inode = self._find(path)
            is_new = inode is None
            if inode is None:
                inode = self._now[path] = Inode(path, 0)
            return ForgetfulFile(self, inode, name, flags, is_new=is_new)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.guard:
            self.refuse_if_off(self.cuts)
            inode = self._find(filename)
            if inode is None or inode not in self._durable.values():
                self._now.pop(filename, None)
                super().xDelete(filename, False)
            else:
                # Gone for everyone, but the folder may still remember it after a cut.
                inode.place = f"{filename}.gone-{next(_numbers)}"
                os.rename(filename, inode.place)
                del self._now[filename]
            if syncdir:
                self.sync_folder()

    def excepthook(self, *_: object) -> bool:
        """What cannot be reported through SQLite (a refusal while a dead connection closes) is nobody's business."""
        return True

    # behind it

    def _find(self, path: str) -> Inode | None:
        """The file of that name; one that was there before us is durable."""
        if path not in self._now and os.path.exists(path):
            self._now[path] = self._durable[path] = Inode(path, os.path.getsize(path))
        return self._now.get(path)

    def _forget_folder_changes(self) -> None:
        kept = set(self._durable.values())
        for inode in set(self._now.values()) - kept:
            Path(inode.place).unlink(missing_ok=True)
        for path, inode in self._durable.items():
            if inode.place != path:
                os.rename(inode.place, path)
                inode.place = path
        self._now = dict(self._durable)

    def _notice(self, connection: apsw.Connection) -> None:
        if connection.open_vfs == self.name:
            # Held on to, lest Python close it at a moment of its own and complain of the refusal.
            self._connections.append(connection)

    def _close_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(PowerIsOffError):
                connection.close(True)
        self._connections.clear()


class ForgetfulFile(apsw.VFSFile):
    def __init__(
        self,
        disk: ForgetfulDisk,
        inode: Inode,
        name: str | apsw.URIFilename,
        flags: list[int],
        *,
        is_new: bool,
    ) -> None:
        self._disk = disk
        self._inode = inode
        self._cut = disk.cuts
        self._will_sync_folder = is_new and bool(flags[0] & _SYNCS_ITS_FOLDER)
        super().__init__(disk.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.refuse_if_off(self._cut)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._disk.guard:
            self._disk.refuse_if_off(self._cut)
            self._inode.save(super(), offset, offset + len(data))  # type: ignore[arg-type]
            super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._disk.guard:
            self._disk.refuse_if_off(self._cut)
            self._inode.save(super(), newsize, self._inode.synced_size)  # type: ignore[arg-type]
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """The real disk is left alone: what counts as synced is decided here."""
        with self._disk.guard:
            self._disk.refuse_if_off(self._cut)
            self._disk.syncs += 1
            self._inode.sync(self.xFileSize())
            if self._will_sync_folder:
                self._disk.sync_folder()
                self._will_sync_folder = False

    def xLock(self, level: int) -> None:  # noqa: N802
        self._disk.refuse_if_off(self._cut)
        super().xLock(level)

    def excepthook(self, *_: object) -> bool:
        return True


def _read_whole(file: apsw.VFSFile, offset: int, amount: int) -> bytes:
    """apsw strips the zeros a short read may end in; here the range is known to be there."""
    return file.xRead(amount, offset).ljust(amount, b"\0")
