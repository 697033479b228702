"""Vitals: a store's tables in; what waits, for how long, and what stands in the way out."""

from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.storage.tables import StoreTables


class Vitals(Struct, frozen=True):
    """`oldest` is the earliest due time of each lane that has something ready."""

    now: Instant
    unfinished: int
    oldest: dict[str, Instant]
    requests: int
    dead_requests: int
    dead_letters: int
    leases: int
    leases_run_out: int
    paused: list[str]
    blocked: list[str]
    marks: dict[str, str]


async def read_vitals(tables: StoreTables) -> Vitals:
    now = await tables.moment()
    ((leases, run_out),) = await tables.ask("count_leases", now)
    ((requests, dead_requests),) = await tables.ask("count_requests")
    pauses = await tables.ask("pauses_in_force")
    return Vitals(
        now=now,
        unfinished=(await tables.ask("count_unfinished"))[0][0],
        oldest={lane: Instant(due) for lane, due in await tables.ask("waiting_lanes")},
        requests=requests,
        dead_requests=dead_requests,
        dead_letters=(await tables.ask("count_dead_letters"))[0][0],
        leases=leases,
        leases_run_out=run_out,
        paused=[f"{kind} {name}".rstrip() for _, kind, name, _, _ in pauses],
        blocked=[account for account, _ in await tables.ask("blocked_accounts", now)],
        marks={name: value for name, value, _ in await tables.ask("read_marks")},
    )
