"""Duties: what one process does for all, such as sweeping."""

from datetime import timedelta
from typing import Protocol


class Duties(Protocol):
    async def take(self, duty: str, span: timedelta) -> bool:
        """Whether the duty is this process's for the next `span`. Who has it keeps it by asking again in time; when
        its holder is gone or stands still, the next to ask gets it."""
        ...
