"""A seed's scenario: who asks what, how the providers behave, and how each life of the product ends."""

import random
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct, field

from noroshi.domain.records import DeadLetterFilter, PauseKind
from tests.faults.simulation.asks import Ask, Mix, draw_asks
from tests.faults.simulation.provider import CALM, Weather

MILD = Weather(slow=0.15, hang=0.02, refused=0.03, dropped=0.04, cut_short=0.03, too_many=0.02, busy=0.08, gone=0.02)
STORMY = Weather(
    slow=0.3,
    hang=0.06,
    refused=0.08,
    dropped=0.08,
    cut_short=0.05,
    too_many=0.05,
    misconfigured=0.02,
    busy=0.25,
    rejected=0.04,
    gone=0.05,
)
SLUGGISH = Weather(slow=0.9, busy=0.3, dropped=0.05)
"""Everything takes seconds: sends are in flight whenever something happens."""


class Ending(StrEnum):
    """How a life is to end; one that does not come to it by then is cut off."""

    AT_STEP = "crash at a step"
    AT_POINT = "crash at a named point"
    AT_ANY_POINT = "crash at some point"
    SHUTDOWN = "shutdown"


class Disturbance(StrEnum):
    """What happens in the middle of a life. FREEZE: nobody runs, longer than a lease lasts. ZOMBIE: another
    process opens the same store while the first still lives."""

    FREEZE = "freeze"
    ZOMBIE = "zombie"


class LifePlan(Struct, frozen=True):
    """`nth`: the step, or which time the point is reached. `is_retired`: the first account is not served."""

    ending: Ending
    seconds: float
    nth: int = 0
    point: str = ""
    downtime: float = 1.0
    disturbance: Disturbance | None = None
    disturbed_at: float = 0.0
    is_retired: bool = False


class PauseErrand(Struct, eq=False):
    at: float
    until: float
    kind: PauseKind
    name: str | None
    is_done: bool = False


class CancelErrand(Struct, eq=False):
    ask: Ask
    after: float
    is_done: bool = False


class ReplayErrand(Struct, eq=False):
    at: float
    matching: DeadLetterFilter
    is_discard: bool = False
    is_done: bool = False


Errand = PauseErrand | CancelErrand | ReplayErrand


class Scenario(Struct):
    """`has_gamma`: e-mail is served by a second account while the first is retired."""

    mix: Mix
    weather: Weather
    asks: list[Ask]
    errands: list[Errand]
    lives: list[LifePlan]
    answer_wait: timedelta
    per_second: int | None
    mishaps: float
    has_gamma: bool = False
    last_replay: bool = False
    tags: list[str] = field(default_factory=list)


POINTS = (
    *("commit.accept.before", "commit.accept.after", "commit.address.before", "commit.address.after"),
    *("commit.claim.before", "commit.claim.after", "commit.settle.before", "commit.settle.after"),
    *("send.alpha.before", "send.alpha.after", "send.beta.before", "send.beta.after"),
    *("commit.cancel_begin.after", "commit.cancel_page.before", "commit.cancel_page.after"),
    *("commit.replay.before", "commit.replay.after", "commit.answer.before", "commit.answer.after"),
    *("commit.block_account.before", "commit.block_account.after", "commit.resume.after", "commit.renew.after"),
)
_POINT_WEIGHTS = (10, 10, 3, 3, 4, 4, 8, 8, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)


def draw_scenario(chance: random.Random) -> Scenario:
    has_poison = chance.random() < 0.06
    mix = chance.choices(list(Mix), (40, 20, 20, 20))[0]
    asks = draw_asks(chance, mix, has_poison=has_poison)
    has_gamma = not has_poison and chance.random() < 0.15
    lives = _draw_lives(chance, has_gamma=has_gamma, is_gentle=chance.random() < 0.12, has_poison=has_poison)
    weather = chance.choices((CALM, MILD, STORMY, SLUGGISH), (20, 40, 25, 15))[0]
    if has_gamma or any(life.disturbance for life in lives):
        weather = SLUGGISH  # or nothing would be in flight when it matters
    return Scenario(
        mix=mix,
        weather=weather,
        asks=asks,
        errands=_draw_errands(chance, asks),
        lives=lives,
        answer_wait=timedelta(seconds=chance.choice((0, 2))),
        per_second=chance.choice((None, None, 3, 20)),
        mishaps=chance.choice((0.0, 0.0, 0.0, 0.05)),
        has_gamma=has_gamma,
        last_replay=chance.random() < 0.3,
    )


def _draw_lives(chance: random.Random, *, has_gamma: bool, is_gentle: bool, has_poison: bool) -> list[LifePlan]:
    """A gentle world has shutdowns only, or nothing at all: it may not double a single message."""
    count = chance.choices((0, 1, 2, 3, 4), (4, 16, 30, 30, 20))[0] + (1 if has_gamma else 0)
    may_disturb = not (has_poison or has_gamma or is_gentle)
    lives = [_draw_life(chance, is_gentle=is_gentle, may_disturb=may_disturb) for _ in range(count)]
    if has_gamma:
        # Retired while its sends are in flight, so that its leases stand in the sweeper's way.
        lives.append(LifePlan(Ending.AT_STEP, chance.uniform(4, 9), chance.randint(100, 900), is_retired=True))
    return lives


def _draw_life(chance: random.Random, *, is_gentle: bool, may_disturb: bool) -> LifePlan:
    endings = list(Ending)
    ending = Ending.SHUTDOWN if is_gentle else chance.choices(endings, (30, 40, 15, 15))[0]
    nth = {
        Ending.AT_STEP: chance.randint(1, 900),
        Ending.AT_POINT: chance.choice((1, 1, 1, 2, 3, 5, 8)),
        Ending.AT_ANY_POINT: chance.randint(1, 90),
    }
    disturbance = None
    if may_disturb and chance.random() < 0.15:
        disturbance = chance.choice(list(Disturbance))
    return LifePlan(
        ending=ending,
        seconds=chance.uniform(12, 30) if disturbance else chance.uniform(0.5, 12),
        nth=nth.get(ending, 0) + (300 if disturbance and ending is Ending.AT_STEP else 0),
        point=chance.choices(POINTS, _POINT_WEIGHTS)[0],
        downtime=chance.choice((0.2, 1.0, 5.0, 45.0)),
        disturbance=disturbance,
        disturbed_at=chance.uniform(0.2, 7),
    )


def _draw_errands(chance: random.Random, asks: list[Ask]) -> list[Errand]:
    errands: list[Errand] = [CancelErrand(ask, chance.uniform(0, 4)) for ask in asks if chance.random() < 0.12]
    while chance.random() < 0.2:
        kind = chance.choice(list(PauseKind))
        names = {PauseKind.ACCOUNT: "beta", PauseKind.CHANNEL: "email", PauseKind.CATEGORY: "transaction"}
        at = chance.uniform(0, 8)
        errands.append(PauseErrand(at, at + chance.uniform(0.5, 12), kind, names.get(kind)))
    if chance.random() < 0.3:
        matching = DeadLetterFilter(channel=chance.choice(("email", "sms", "push")))
        errands.append(ReplayErrand(chance.uniform(3, 15), matching, is_discard=chance.random() < 0.2))
    return errands
