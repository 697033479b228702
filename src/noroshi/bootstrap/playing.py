"""A day to play in; a shop of its own, whose time passes when it is told to, out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from noroshi.bootstrap.back import opened_back
from noroshi.domain.instants import Instant
from noroshi.machine.clock import PlayedClock, SystemClock
from noroshi.ports.line import Line
from noroshi.reservations.shop import Shop
from noroshi.settings import read_settings


class Play(Struct, frozen=True):
    shop: Shop
    clock: PlayedClock

    async def rest(self, seconds: float) -> None:
        """For the audience, in its own time."""
        await SystemClock().sleep(timedelta(seconds=seconds))


@asynccontextmanager
async def played_shop(start: Instant, line: Line) -> AsyncIterator[Play]:
    """On a store that is gone afterwards. No setting of the environment plays a part."""
    with TemporaryDirectory(prefix="noroshi-demo-") as folder:
        clock = PlayedClock(start)
        settings = read_settings({}, {"data": str(Path(folder) / "data")})
        async with opened_back(settings, clock=clock, line=line) as back:
            yield Play(back.shop, clock)
