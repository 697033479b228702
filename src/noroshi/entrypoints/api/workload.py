"""The workload over the API: what is unfinished, since when, and which accounts are left alone."""

from msgspec import Struct

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.calls import Call, NoQuery
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.wire import Moment, when


class LaneItem(Struct, frozen=True):
    """A lane that holds ready deliveries; `due_at` is when the first of them is, or was, due."""

    channel: str
    account: str
    priority: str
    due_at: Moment


class WorkloadAnswer(Struct, frozen=True):
    """In deliveries, over all processes. `oldest_due_at` is null while nothing that is due waits; `open_breakers` are
    accounts that failed too often in a row, `blocked` those that asked to be left alone, and until when."""

    unfinished: int
    oldest_due_at: Moment | None
    lanes: list[LaneItem]
    open_breakers: list[str]
    blocked: dict[str, Moment]


async def show_workload(desk: Desk, call: Call[NoQuery, None]) -> WorkloadAnswer:
    if call.tenant != DEFAULT_TENANT:
        raise ProblemError("forbidden", "This is of all tenants together, and for the operator of the server alone.")
    load = await desk.workload()
    now = desk.clock.now()
    lanes = sorted(load.waiting.items(), key=lambda one: one[1])
    return WorkloadAnswer(
        unfinished=load.unfinished,
        oldest_due_at=when(lanes[0][1] if lanes and lanes[0][1] <= now else None),
        lanes=[LaneItem(lane.channel, lane.account, lane.priority, iso(due)) for lane, due in lanes],
        open_breakers=sorted(load.open_breakers),
        blocked={account: iso(until) for account, until in load.blocked.items()},
    )
