"""Ballast: a file that holds disk space back; when the disk is full it goes, so that what was begun can be finished."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

from noroshi.ports.clock import Clock

MOST_BYTES = 64_000_000
LOOK_AGAIN_AFTER = timedelta(seconds=1)

_SHARE = 20
"""At most a twentieth of the disk."""


class Ballast:
    """Laid at the start, let go when the disk is full, laid again once there is twice the room for it: until then
    nothing new should be taken on, or it would use up what is left for finishing the old (W28)."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path = directory / "ballast"
        self._clock = clock
        self._bytes = min(MOST_BYTES, shutil.disk_usage(directory).total // _SHARE)
        self._look_at = 0.0
        self._is_laid = self._path.exists()

    @property
    def is_short(self) -> bool:
        """Whether the disk is too full to take on more. Looks at the disk itself at most once a second."""
        if self._is_laid:
            return False
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_AFTER.total_seconds()
            self._is_laid = self._lay()
        return not self._is_laid

    def let_go(self) -> None:
        """Called by whoever finds the disk full, from any thread."""
        self._path.unlink(missing_ok=True)
        self._is_laid = False

    def _lay(self) -> bool:
        if shutil.disk_usage(self._path.parent).free < 2 * self._bytes:
            return False
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._bytes)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        return True
