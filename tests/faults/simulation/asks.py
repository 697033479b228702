"""What callers ask and what they hear: requests drawn from a seed, and the memory of their answers.

A caller lives outside the world that crashes: a call that was never answered is made again, with the same key.
"""

import random
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import UNSET, Struct, field

from noroshi.domain.ids import DEFAULT_TENANT, BatchId, read
from noroshi.domain.instants import moment_of, plus
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from tests.faults.machinery.sim_ports import SIM_START
from tests.faults.simulation.population import (
    BARE,
    BROKEN,
    CHANNELS,
    LIMITED,
    MAIL_ONLY,
    NOTE,
    PICKY,
    PLAIN,
    QUIET,
    SCARCE,
    STRANGERS,
)
from tests.faults.simulation.provider import POISON_SEND

POISON_RENDER = "poison render"
"""A text that ends the process of whoever tries to render it."""

CALLER = Caller(DEFAULT_TENANT, "simkey", "simulation", frozenset())

_CATEGORIES = ("general", "general", "transaction", "transaction", "one_time_code", "social", "brief")
_PRIORITIES = (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, Priority.NORMAL, Priority.NORMAL, Priority.LOW)
_SPECIAL = tuple(one.user_id for one in (*LIMITED, *SCARCE, *QUIET, *PICKY, *BARE)) + STRANGERS
_HABITUAL = tuple(one.user_id for one in PLAIN)


class Ask(Struct, eq=False):
    """One request and what its caller heard. The request's digest key names it inside the store.

    `copies` calls are made at once; after `patience` seconds the caller hangs up and calls again."""

    number: int
    at: float
    request: NotificationRequest
    key: str | None
    copies: int = 1
    patience: float | None = None
    calls: int = 0
    outstanding: int = 0
    batch_ids: list[BatchId] = field(default_factory=list)
    answers: list[AcceptedAnswer] = field(default_factory=list)
    replays: list[object] = field(default_factory=list)
    refused: str | None = None

    @property
    def name(self) -> str:
        return name_of(self.number)

    @property
    def text(self) -> str:
        return str(self.request.data["text"])

    @property
    def is_answered(self) -> bool:
        return bool(self.batch_ids) or self.refused is not None

    @property
    def is_poison(self) -> bool:
        return self.text.startswith((POISON_SEND, POISON_RENDER))

    def hear(self, answer: AcceptedAnswer) -> None:
        self.answers.append(answer)
        self._remember(answer.batch_id)

    def hear_problem(self, problem: ProblemError) -> None:
        """A replay names the batch: to the caller that is as good as the first answer. A 503 says nothing."""
        if problem.kind.code == "idempotency_replay":
            self.replays.append(problem.extra["first"])
            self._remember(str(problem.extra["batch_id"]))
        elif problem.kind.status < 500:
            self.refused = problem.kind.code

    def _remember(self, batch_id: str) -> None:
        raw = read(batch_id)
        assert raw is not None
        self.batch_ids.append(BatchId(raw))


def name_of(number: int) -> str:
    return f"ask-{number}"


class Mix(StrEnum):
    """What a world's callers mostly want: so that each kind of trouble gets worlds of its own."""

    ORDINARY = "ordinary"
    LARGE = "large requests"
    LIMITS = "limits and quiet hours"
    COPIES = "the same content again"


def draw_asks(chance: random.Random, mix: Mix, *, has_poison: bool) -> list[Ask]:
    count = chance.randint(2, 3) if mix is Mix.LARGE else chance.randint(3, 7)
    texts = [f"text {n}" for n in range(2 if mix is Mix.COPIES else count)]
    asks = [_draw_ask(chance, number, mix, chance.choice(texts)) for number in range(count)]
    if has_poison:
        asks.append(_draw_poison(chance, count))
    return asks


def _draw_ask(chance: random.Random, number: int, mix: Mix, text: str) -> Ask:
    at = chance.uniform(0, 6)
    template = chance.choices((NOTE, MAIL_ONLY, BROKEN), (88, 8, 4))[0]
    channels = ["email"] if template == MAIL_ONLY else chance.sample(CHANNELS, chance.choice((1, 1, 2, 3)))
    if chance.random() < 0.03:
        channels = ["pigeon"]
    request = NotificationRequest(
        user_ids=_draw_people(chance, mix),
        template_id=template,
        channels=UNSET if chance.random() < 0.1 else channels,
        data={"text": text},
        priority=chance.choice(_PRIORITIES),
        scheduled_at=_later(at, chance.choice((3.0, 20.0, 700.0))) if chance.random() < 0.12 else None,
        category=chance.choice(_CATEGORIES),
        expires_at=_later(at, chance.choice((0.5, 8.0, 45.0, 5_000.0))) if chance.random() < 0.15 else None,
        digest_key=name_of(number),
    )
    has_key = chance.random() < 0.85
    return Ask(
        number=number,
        at=at,
        request=request,
        key=f"key-{number}" if has_key else None,
        copies=chance.choice((1, 1, 2, 3)) if has_key else 1,
        patience=chance.uniform(0, 0.5) if has_key and chance.random() < 0.15 else None,
    )


def _draw_people(chance: random.Random, mix: Mix) -> list[str]:
    if mix is Mix.LARGE:
        people = [*chance.sample(_HABITUAL, 10), *chance.sample(_SPECIAL, 4)]
        chance.shuffle(people)
        return [*people, *chance.choices(people, k=chance.randint(0, 2))]
    known = _SPECIAL if mix is Mix.LIMITS and chance.random() < 0.8 else _HABITUAL
    people = chance.sample(known, chance.randint(1, 4))
    if chance.random() < 0.1:
        people.append(chance.choice((*STRANGERS, people[0])))
    return people


def _draw_poison(chance: random.Random, number: int) -> Ask:
    request = NotificationRequest(
        user_ids=[chance.choice(_HABITUAL)],
        template_id=NOTE,
        channels=[chance.choice(("email", "sms"))],
        data={"text": chance.choice((POISON_SEND, POISON_RENDER))},
        priority=chance.choice(_PRIORITIES),
        category=chance.choice(("general", "general", "general", "one_time_code")),
        digest_key=name_of(number),
    )
    return Ask(number, chance.uniform(0, 3), request, f"key-{number}")


def _later(at: float, seconds: float) -> datetime:
    return moment_of(plus(SIM_START, timedelta(seconds=at + seconds)))
