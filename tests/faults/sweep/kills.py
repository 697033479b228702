"""A plan goes in; a product is killed under load again and again, and every kill comes out with what it met."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from msgspec import Struct

from noroshi.domain.instants import Instant, iso
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.settings import DispatchSettings
from tests.faults.machinery.load import Load, Posted
from tests.faults.machinery.reckoning import Reckoning
from tests.faults.sweep.launcher import VARIABLE
from tests.faults.sweep.seeded import TEMPLATE
from tests.faults.sweep.trial import Trial, now
from tests.faults.sweep.workloads import CODES
from tests.stand_ins.ledger_provider.wire import Conduct

_REPLAYED = 409
_CALLERS = 8
_RECIPIENTS = 2
_LEAD = (0.010, 0.070)
"""How long before the kill the second half of a life's requests begins: it takes a few commits."""

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
    """`answered`: of the requests that came last, those answered before the kill; `unanswered` are those that were
    waiting and got no answer any more; `kept` those among them that turn out to have been committed."""

    at: Instant
    after: float
    answered: int
    in_flight: int = 0
    unanswered: int = 0
    kept: int = 0

    @property
    def is_amid_commits(self) -> bool:
        """A commit group was left unanswered: the server had begun to answer this very stream, or had committed."""
        return self.unanswered > 0 and self.answered + self.kept > 0


class _Scene(Struct):
    """What the caller saw at the moment of a kill: who was waiting, and how much each had heard so far."""

    kill: Kill
    waiting: list[tuple[Posted, int]]


async def kill_under_load(trial: Trial, plan: Plan, seconds: float = 600) -> list[Kill]:
    """All requests are answered and everything is drained when this returns."""
    chance = random.Random(plan.seed)
    trial.provider.behave(Conduct(delay=plan.delay))
    parts = portions(bodies(trial.seeded.people, plan.messages), plan.kills * 2)
    callers = Callers(trial, seconds)
    scenes: list[_Scene] = []
    for _ in range(plan.kills):
        await asyncio.to_thread(trial.start)
        ready_at = time.monotonic()
        callers.begin(next(parts))
        lead = chance.uniform(*_LEAD)
        await asyncio.sleep(max(chance.uniform(*plan.lifetime) - lead, 0))
        stream = callers.begin(next(parts))
        await asyncio.sleep(lead)
        waiting, answered = callers.waiting(), sum(posted.batch_id is not None for posted in stream.values())
        kill = Kill(now(), time.monotonic() - ready_at, answered)
        trial.noroshi.kill()
        kill.in_flight = (await asyncio.to_thread(trial.note_crash, "kill -9", kill.at)).in_flight
        scenes.append(_Scene(kill, waiting))
    trial.provider.behave(Conduct())
    # The last life is sound in a control, too: what the kills have met is what counts.
    await asyncio.to_thread(trial.start, **{VARIABLE: ""})
    await callers.end()
    await asyncio.to_thread(trial.drain, 120)
    return [_told(scene) for scene in scenes]


class Callers:
    """Every load that was begun; each goes on until all its requests are answered."""

    def __init__(self, trial: Trial, seconds: float) -> None:
        self._trial = trial
        self._seconds = seconds
        self._loads: list[Load] = []
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, bodies: dict[str, dict[str, Any]]) -> dict[str, Posted]:
        load = Load(self._trial.noroshi.url, self._trial.seeded.api_key, bodies, _CALLERS)
        self._trial.posted |= load.posted
        self._loads.append(load)
        self._tasks.append(asyncio.create_task(load.run(self._seconds)))
        return load.posted

    def waiting(self) -> list[tuple[Posted, int]]:
        found = [load.posted[key] for load in self._loads for key in load.waiting]
        return [(posted, len(posted.heard)) for posted in found]

    async def end(self) -> None:
        await asyncio.gather(*self._tasks)


def _told(scene: _Scene) -> Kill:
    """Afterwards it is known who was never answered, and which of those had been kept."""
    dropped = [posted for posted, heard in scene.waiting if posted.heard[heard].status is None]
    scene.kill.unanswered = len(dropped)
    scene.kill.kept = sum(posted.heard[-1].status == _REPLAYED for posted in dropped)
    return scene.kill


def render_kills(kills: list[Kill], run: Reckoning, blamed: Counter[int]) -> str:
    """One row a kill."""
    lines = [
        "| kill | at | ms after ready | in flight | unanswered | of them kept | lost | doubled |",
        "|---:|---|" + "---:|" * 6,
    ]
    for number, kill in enumerate(kills):
        met = f"{kill.after * 1000:,.0f} | {kill.in_flight} | {kill.unanswered} | {kill.kept}"
        lines.append(f"| {number + 1} | {iso(kill.at)} | {met} | {run.lost_by_crash[number]} | {blamed[number]} |")
    return "\n".join(lines)


def bodies(people: list[str], messages: int) -> Iterator[tuple[str, dict[str, Any]]]:
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


def portions(requests: Iterator[tuple[str, dict[str, Any]]], count: int) -> Iterator[dict[str, dict[str, Any]]]:
    """All of them, in `count` parts that differ by one at most."""
    everything = list(requests)
    for number in range(count):
        yield dict(everything[number * len(everything) // count : (number + 1) * len(everything) // count])
