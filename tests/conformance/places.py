"""Places for stores: settings of a store that is not there yet, and something of everything to put into one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from noroshi.bootstrap.back import opened_back
from noroshi.domain.deliveries import Verdict
from noroshi.domain.notification_jobs import JobKind
from noroshi.machine.secrets import load_secrets
from noroshi.settings import Settings, read_settings
from tests.cast import ALICE, HANAKO, JIRO, TARO
from tests.conformance.ground import Ground
from tests.conformance.shop_counter import Counter
from tests.conformance.stores import HandClock

Place = Callable[[str], Settings]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """`place("sqlite")`: settings of a store that is not there yet, all with the same keys."""
    with ExitStack() as ends:

        def build(kind: str) -> Settings:
            if kind == "postgres":
                url = ends.enter_context(request.getfixturevalue("postgres_databases").fresh())
            else:
                url = f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}"
            settings = read_settings({}, {"data": str(tmp_path / "data"), "store": url})
            load_secrets(settings.data, None)
            return settings

        yield build


async def fill(settings: Settings) -> None:
    """Something of everything: sent, dead, waiting, scheduled, rejected, and text of every kind."""
    async with opened_back(settings) as back:
        ground = Ground(back.store, HandClock())
        await ground.meet(HANAKO, TARO, JIRO, ALICE)
        await ground.crowd(30)
        await ground.write("welcome", "email", "push")
        await ground.accept(HANAKO, TARO, ALICE, key="once", files={"請求書.pdf": bytes(range(256))})
        for claim in (await ground.take()).claims:
            await ground.settle(claim, Verdict.SENT, message_id=f"m-{claim.recipient.user_id}-é\U0001f525")
        await ground.accept(JIRO, channels=["push"])
        await ground.keep(ground.batch("nobody", "taro", "hanako"), ground.batch("alice", after=timedelta(days=1)))
        await back.mint_key("shop", [])
        counter = await Counter(back.store, HandClock()).open()
        number = await counter.reserve()
        await counter.pay(number)
        await counter.end((await counter.job(number, JobKind.CONFIRMATION)).job_id)
