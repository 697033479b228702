"""What must not happen too often or at the wrong time: limits, quiet hours, rests, pace, pauses, due times (I9)."""

from collections.abc import Iterator
from datetime import timedelta

from noroshi.domain.instants import plus
from noroshi.domain.limits import limit_for
from noroshi.domain.priorities import URGENT
from noroshi.domain.quiet_hours import quiet_until
from noroshi.domain.records import PauseKind
from noroshi.domain.states import Status
from tests.faults.simulation.evidence import Evidence, name_of, place_of
from tests.faults.simulation.facts import NotificationFacts
from tests.faults.simulation.population import PEOPLE

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_PAUSE_TAKES = timedelta(seconds=5)


def are_limits_kept(evidence: Evidence) -> Iterator[str]:
    counted: dict[tuple[str, str], list[NotificationFacts]] = {}
    for one in evidence.facts.notifications.values():
        if one.standing == 2:
            counted.setdefault((one.user_id, one.channel), []).append(one)
    for (user_id, channel), rows in counted.items():
        own = PEOPLE[user_id].preferences.frequency_limit.get(channel)
        limits = {row.notification_id: limit_for(channel, row.batch.priority, own) for row in rows}
        rows.sort(key=lambda row: (row.at, getattr(limits[row.notification_id], "per_hour", 0)))
        for place, row in enumerate(rows):
            limit = limits[row.notification_id]
            for span, most in ((_HOUR, limit.per_hour), (_DAY, limit.per_day)) if limit else ():
                had = sum(plus(row.at, -span) < other.at for other in rows[: place + 1])
                if had > most:
                    yield f"{user_id} got {had} on {channel} within {span}, {most} are allowed"


def are_quiet_hours_kept(evidence: Evidence) -> Iterator[str]:
    for one in evidence.facts.notifications.values():
        wishes = PEOPLE[one.user_id].preferences.quiet_hours if one.user_id in PEOPLE else None
        if wishes is None or one.standing == 0 or one.batch.priority in URGENT or one.status is Status.SCHEDULED:
            continue
        if quiet_until(wishes, "UTC", one.at) is not None:
            yield f"{name_of(one)} was queued in the quiet hours of {one.user_id}"


def are_rests_kept(evidence: Evidence) -> Iterator[str]:
    for rest in evidence.provider.rests:
        broken = [h for h in evidence.provider.handed if h.account == rest.account and rest.begins < h.at < rest.ends]
        if broken:
            yield f"{len(broken)} messages reached {rest.account} while it had asked to be left alone"


def is_pace_kept(evidence: Evidence) -> Iterator[str]:
    if evidence.per_second is None:
        return
    for life in evidence.alone:
        times = sorted(h.at for h in evidence.provider.handed if h.account == "beta" and h.life == life)
        for place, first in enumerate(times):
            within = sum(time < first + 1_000_000 for time in times[place:])
            if within > evidence.per_second:
                yield f"{within} messages in a second where {evidence.per_second} are allowed"
                break


def are_pauses_kept(evidence: Evidence) -> Iterator[str]:
    for pause in evidence.paused:
        begins = plus(pause.begins, _PAUSE_TAKES)
        for handed in evidence.provider.handed:
            named = {
                PauseKind.EVERYTHING: None,
                PauseKind.ACCOUNT: handed.account,
                PauseKind.CHANNEL: handed.attempt.lane.channel,
                PauseKind.CATEGORY: handed.attempt.category,
            }
            if begins < handed.at < pause.ends and named[pause.kind] == pause.name:
                yield f"{place_of(handed.attempt.key)} was sent while {pause.kind} {pause.name or ''} was paused"


def is_nothing_early(evidence: Evidence) -> Iterator[str]:
    """Not before its schedule, the end of its hold, or (in lives without a rival) the time of its retry."""
    for handed in evidence.provider.handed:
        key = handed.attempt.key
        one = evidence.facts.notifications.get(key.notification_id)
        if one is None:
            continue
        if handed.at < one.batch.due_at:
            yield f"{place_of(key)} was sent before it was scheduled"
        for noted in one.trail:
            is_hold = noted.kind == "deferred"
            is_retry = noted.kind == "failed" and noted.endpoint == key.endpoint_id and handed.life in evidence.alone
            if (is_hold or is_retry) and noted.at < handed.at < noted.detail["due_at"]:
                yield f"{place_of(key)} was sent before its {'hold ended' if is_hold else 'retry was due'}"
