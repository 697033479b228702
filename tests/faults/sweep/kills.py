"""A plan goes in; a product is killed under load again and again, and every kill comes out with what it met."""

import asyncio
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from tests.faults.machinery.load import Load, Posted
from tests.faults.sweep.seeded import TEMPLATE
from tests.faults.sweep.trial import Trial, now
from tests.faults.sweep.workloads import CODES
from tests.stand_ins.ledger_provider.wire import Conduct

_CALLERS = 16
_RECIPIENTS = 5
_LEAD = (0.005, 0.040)
"""How long before the kill the second half of a life's requests begins: about one commit."""

_FLIGHTS_A_WORKER = 2
"""One being settled while the next is being sent."""

_KINDS: tuple[tuple[str, dict[str, str]], ...] = (
    ("email", {}),
    ("email", {}),
    ("email", {}),
    ("sms", {}),
    ("email", {"priority": "critical"}),
    ("sms", {"priority": "critical", "category": CODES}),
)


class Plan(Struct, frozen=True):
    """`lifetime` in seconds from ready to the kill; the provider takes `delay` for each call."""

    kills: int
    messages: int
    lifetime: tuple[float, float] = (0.05, 3.0)
    max_batch: int = 5
    delay: timedelta = timedelta(milliseconds=250)
    seed: int = 2

    @property
    def people(self) -> int:
        """Two messages each, which is within everybody's limits."""
        return self.messages // 2

    @property
    def most_in_flight(self) -> int:
        """What the workers of the lanes in use can hold at once."""
        lanes = {Lane(channel, "", Priority(more.get("priority", "normal"))) for channel, more in _KINDS}
        return sum(DispatchSettings().workers_of(lane) for lane in lanes) * _FLIGHTS_A_WORKER * self.max_batch

    @property
    def environment(self) -> dict[str, str]:
        return {"LEDGER_PROVIDER_MAX_BATCH": str(self.max_batch), "NOROSHI_LOG_LEVEL": "warning"}


class Kill(Struct):
    """`unanswered` are the requests that were waiting and got no answer any more; `kept` those among them that turn
    out to have been committed."""

    at: Instant
    after: float
    in_flight: int
    unanswered: int = 0
    kept: int = 0

    @property
    def where(self) -> str:
        return f"{self.after * 1000:,.0f} ms after ready, {self.unanswered} unanswered, {self.kept} of them kept"


class _Scene(Struct):
    """What the caller saw at the moment of a kill: who was waiting, and how much each had heard so far."""

    kill: Kill
    waiting: list[tuple[Posted, int]]


async def kill_under_load(trial: Trial, plan: Plan, seconds: float = 600) -> list[Kill]:
    """All requests are answered and everything is drained when this returns."""
    chance = random.Random(plan.seed)
    trial.provider.behave(Conduct(delay=plan.delay))
    portions = _portions(_bodies(trial.seeded.people, plan.messages), plan.kills * 2)
    callers = _Callers(trial, seconds)
    scenes: list[_Scene] = []
    for _ in range(plan.kills):
        await asyncio.to_thread(trial.start)
        ready_at = time.monotonic()
        callers.begin(next(portions))
        lead = chance.uniform(*_LEAD)
        await asyncio.sleep(max(chance.uniform(*plan.lifetime) - lead, 0))
        callers.begin(next(portions))
        await asyncio.sleep(lead)
        waiting = callers.waiting()
        kill = Kill(now(), time.monotonic() - ready_at, 0)
        trial.noroshi.kill()
        crash = await asyncio.to_thread(trial.note_crash, "", kill.at)
        kill.in_flight = crash.in_flight
        scenes.append(_Scene(kill, waiting))
    trial.provider.behave(Conduct())
    await asyncio.to_thread(trial.start)
    await callers.end()
    await asyncio.to_thread(trial.drain, 120)
    _tell(trial, scenes)
    return [scene.kill for scene in scenes]


class _Callers:
    """Every load that was begun; each goes on until all its requests are answered."""

    def __init__(self, trial: Trial, seconds: float) -> None:
        self._trial = trial
        self._seconds = seconds
        self._loads: list[Load] = []
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, bodies: dict[str, dict[str, Any]]) -> None:
        load = Load(self._trial.noroshi.url, self._trial.seeded.api_key, bodies, _CALLERS)
        self._trial.posted |= load.posted
        self._loads.append(load)
        self._tasks.append(asyncio.create_task(load.run(self._seconds)))

    def waiting(self) -> list[tuple[Posted, int]]:
        found = [load.posted[key] for load in self._loads for key in load.waiting]
        return [(posted, len(posted.heard)) for posted in found]

    async def end(self) -> None:
        await asyncio.gather(*self._tasks)


def _tell(trial: Trial, scenes: list[_Scene]) -> None:
    """Afterwards it is known who was never answered, and which of those had been kept."""
    for number, scene in enumerate(scenes):
        for posted, heard in scene.waiting:
            if posted.heard[heard].status is None:
                scene.kill.unanswered += 1
                scene.kill.kept += posted.heard[-1].status == 409
        crash = trial.crashes[number]
        trial.crashes[number] = type(crash)(crash.at, crash.in_flight, scene.kill.where)


def _bodies(people: list[str], messages: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(messages // _RECIPIENTS):
        channel, more = _KINDS[number % len(_KINDS)]
        first = number * _RECIPIENTS
        yield (
            f"request-{number}",
            {
                "user_ids": [people[place % len(people)] for place in range(first, first + _RECIPIENTS)],
                "template_id": TEMPLATE,
                "channels": [channel],
                "data": {"n": f"request-{number}"},
                **more,
            },
        )


def _portions(
    bodies: Iterator[tuple[str, dict[str, Any]]], count: int
) -> Iterator[dict[str, dict[str, Any]]]:
    """All of them, in `count` parts that differ by one at most."""
    everything = list(bodies)
    for number in range(count):
        yield dict(everything[number * len(everything) // count : (number + 1) * len(everything) // count])
