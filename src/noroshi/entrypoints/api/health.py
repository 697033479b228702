"""Health: whether the server lives, whether it can do its work, and its metrics, for whoever watches."""

from msgspec import Struct

from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.calls import Call, NoQuery
from noroshi.entrypoints.api.desk import Desk


class HealthAnswer(Struct, frozen=True):
    status: str


class ReadyAnswer(Struct, frozen=True):
    """`notes` tell what an operator should know, such as the catcher standing in for a provider."""

    status: str
    notes: list[str]


async def show_health(_desk: Desk, _call: Call[NoQuery, None]) -> HealthAnswer:
    return HealthAnswer("ok")


async def show_readiness(desk: Desk, _call: Call[NoQuery, None]) -> ReadyAnswer:
    problems = await desk.readiness()
    if problems:
        raise ProblemError("not_ready", "This server cannot do its work now.", extra={"problems": problems})
    return ReadyAnswer("ready", desk.notes())


async def show_metrics(desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return desk.metrics_text()
