"""The invariants (RELIABILITY 4.1): what was asked, what is in the store and what the provider took go in; every
statement that does not hold comes out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import apsw
import msgspec

from noroshi.domain.categories import OnUnknown
from noroshi.domain.channels import CHANNELS
from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import show
from noroshi.domain.instants import Instant, plus
from noroshi.domain.reasons import Reason
from noroshi.domain.states import TERMINAL, TRANSITIONS, Status
from tests.faults.simulation.asks import Ask
from tests.faults.simulation.evidence import Evidence, Violation, name_of, place_of
from tests.faults.simulation.facts import BatchFacts, NotificationFacts
from tests.faults.simulation.population import PEOPLE
from tests.faults.simulation.provider import BUSY, Taking
from tests.faults.simulation.site import CATEGORIES
from tests.faults.simulation.timing import (
    are_limits_kept,
    are_pauses_kept,
    are_quiet_hours_kept,
    are_rests_kept,
    is_nothing_early,
    is_pace_kept,
)

MOST_CLAIMS = 7
_CONTENT_WINDOW = timedelta(minutes=5)
_USED_UP = frozenset({BUSY, "TIMEOUT", "PROVIDER_ERROR", "NO_ANSWER"})
"""Codes that end a delivery only once its tries are used up."""


ORPHANS: Mapping[str, str] = {
    "waits to be sent, but has no delivery": """SELECT n.notification_id FROM notifications n
        WHERE n.status IN (30, 50) AND NOT EXISTS (
            SELECT 1 FROM deliveries d WHERE d.notification_id = n.notification_id)""",
    "is scheduled, but nothing will release it": """SELECT n.notification_id FROM notifications n
        WHERE n.status = 20 AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.notification_id = n.notification_id)""",
    "is held, but not scheduled": """SELECT h.notification_id FROM holds h WHERE NOT EXISTS (
            SELECT 1 FROM notifications n WHERE n.notification_id = h.notification_id AND n.status = 20)""",
    "has a delivery, but ended without success": """SELECT d.notification_id FROM deliveries d WHERE NOT EXISTS (
            SELECT 1 FROM notifications n WHERE n.notification_id = d.notification_id AND n.status <= 60)""",
}


def orphans(keeper: apsw.Connection) -> list[Violation]:
    """I1 at any moment: whatever is not finished has the row that will carry it on."""
    return [
        Violation("I1", f"{show(raw)} {what}") for what, query in ORPHANS.items() for (raw,) in keeper.execute(query)
    ]


def broken_invariants(evidence: Evidence) -> list[Violation]:
    return [Violation(name, text) for name, checks in _CHECKS.items() for check in checks for text in check(evidence)]


# I1, nothing is lost


def _is_finished(evidence: Evidence) -> Iterator[str]:
    for what, count in evidence.facts.left.items():
        if count:
            yield f"{count} {what} are left after the drain"
    for one in evidence.facts.notifications.values():
        if one.status not in TERMINAL:
            yield f"{name_of(one)} stayed {one.status.name}"


def _are_sums_right(evidence: Evidence) -> Iterator[str]:
    rows = Counter(one.batch.batch_id for one in evidence.facts.notifications.values())
    if evidence.facts.strays:
        yield f"{len(evidence.facts.strays)} notifications belong to no batch"
    for batch in evidence.facts.batches.values():
        if batch.accepted + batch.rejected != batch.total and not batch.is_cancelled:
            yield f"{batch.name}: {batch.accepted} accepted + {batch.rejected} rejected of {batch.total}"
        if sum(batch.reasons.values()) != batch.rejected or batch.rejections != batch.rejected:
            yield f"{batch.name}: {batch.rejected} rejected, for {batch.reasons}, in {batch.rejections} rows"
        known = sum(user_id in PEOPLE for user_id in batch.user_ids[: batch.decided])
        if rows[batch.batch_id] != known * len(batch.channels):
            wanted = known * len(batch.channels)
            yield f"{batch.name}: {rows[batch.batch_id]} notifications where {wanted} were decided"


# I2, the ledger explains


def _is_explained(evidence: Evidence) -> Iterator[str]:
    dead = Counter(letter.key.notification_id for letter in evidence.facts.dead_letters)
    for one in evidence.facts.notifications.values():
        match one.status:
            case Status.SENT:
                if not one.noted("sent") or not evidence.facts.message_ids[one.notification_id]:
                    yield f"{name_of(one)} is SENT without its record or message id"
            case Status.SUPPRESSED:
                if one.reason is None or not any(n.detail.get("code") == one.reason for n in one.noted("suppressed")):
                    yield f"{name_of(one)} is SUPPRESSED {one.reason}, which nothing explains"
            case Status.CANCELLED:
                if not one.noted("cancelled") or not one.batch.is_cancelled:
                    yield f"{name_of(one)} is CANCELLED, which nothing explains"
            case Status.DEAD_LETTERED:
                if one.reason is None or not one.noted("dead_lettered"):
                    yield f"{name_of(one)} is DEAD_LETTERED {one.reason}, which nothing explains"
                if not dead[one.notification_id] and not one.noted("discarded"):
                    yield f"{name_of(one)} is DEAD_LETTERED, but has no dead letter"


def _are_duplicates_owned(evidence: Evidence) -> Iterator[str]:
    """What was left out as a duplicate has an original that was there first (DESIGN 5.5)."""
    originals: dict[tuple[str, str, int], list[NotificationFacts]] = {}
    for one in evidence.facts.notifications.values():
        if one.reason != Reason.DUPLICATE:
            originals.setdefault((one.user_id, one.channel, one.content_hash), []).append(one)
    for one in evidence.facts.notifications.values():
        if one.reason == Reason.DUPLICATE:
            candidates = originals.get((one.user_id, one.channel, one.content_hash), [])
            if not any(other.batch is not one.batch and _stood(other, one.at) for other in candidates):
                yield f"{name_of(one)} was left out as a duplicate of nothing"


def _stood(original: NotificationFacts, at: Instant) -> bool:
    """Whether it may have owned its content then: it was decided within the window before, if only to wait."""
    times = [original.at, *(noted.at for noted in original.noted("deferred"))]
    return any(plus(at, -_CONTENT_WINDOW) < time <= at for time in times)


def _is_no_content_repeated(evidence: Evidence) -> Iterator[str]:
    """The same content, from two batches within five minutes: one of them must have been left out."""
    last: dict[tuple[str, str, int], NotificationFacts] = {}
    for one in sorted(evidence.facts.notifications.values(), key=lambda one: one.at):
        if one.standing == 0:
            continue
        content = (one.user_id, one.channel, one.content_hash)
        before = last.get(content)
        if before is not None and before.batch is not one.batch and one.at < plus(before.at, _CONTENT_WINDOW):
            yield f"{name_of(one)} repeats {name_of(before)}"
        last[content] = one


def _are_tries_counted(evidence: Evidence) -> Iterator[str]:
    """A dead letter's tries are the attempts that failed, and all that the policy allows were made (N6.1)."""
    for letter in evidence.facts.dead_letters:
        one = evidence.facts.notifications.get(letter.key.notification_id)
        if one is None or letter.code == Reason.TEMPLATE_MISSING:
            continue
        failed = 0
        for noted in one.trail:
            if noted.endpoint != letter.key.endpoint_id:
                continue
            if noted.kind == "replayed":
                failed = 0
            else:
                failed += noted.kind == "failed" or (noted.kind == "dead_lettered" and "started_at" in noted.detail)
        if failed != letter.tries:
            yield f"{name_of(one)}: a dead letter of {letter.tries} tries, but {failed} failed"
        category = CATEGORIES.named(letter.category)
        allowed = category.tries or CHANNELS[letter.channel].retry.retries + 1
        if letter.code in _USED_UP and category.on_unknown is not OnUnknown.GIVE_UP and letter.tries != allowed:
            yield f"{name_of(one)}: given up after {letter.tries} of {allowed} tries"


# I3, duplicates


def _are_copies_excused(evidence: Evidence) -> Iterator[str]:
    """Exactly: a second copy needs a first whose answer was lost, by a crash, by the network, or with its claim."""
    by_key: dict[DeliveryKey, list[Taking]] = {}
    for taking in evidence.provider.takings:
        by_key.setdefault(taking.attempt.key, []).append(taking)
    for key, takings in by_key.items():
        unexcused = sum(not taking.is_excused for taking in takings)
        if unexcused > 1:
            yield f"{place_of(key)} was taken {len(takings)} times, {unexcused} of them with nothing to excuse it"


def _is_give_up_kept(evidence: Evidence) -> Iterator[str]:
    """A one-time code whose fate is unknown is never sent again, unless a person asks for it."""
    takings = Counter(
        taking.attempt.key
        for taking in evidence.provider.takings
        if CATEGORIES.named(taking.attempt.category).on_unknown is OnUnknown.GIVE_UP
    )
    for key, count in takings.items():
        one = evidence.facts.notifications.get(key.notification_id)
        replayed = _replays(one, key)
        if count > 1 + replayed:
            yield f"{place_of(key)}, to be given up when in doubt, was taken {count} times"


def _replays(one: NotificationFacts | None, key: DeliveryKey) -> int:
    noted = () if one is None else one.noted("replayed")
    return sum(entry.endpoint == key.endpoint_id for entry in noted)


# I4, I5


def _is_asked_for(evidence: Evidence) -> Iterator[str]:
    for handed in evidence.provider.handed:
        attempt = handed.attempt
        if attempt.expires_at is not None and attempt.expires_at <= handed.at:
            yield f"{place_of(attempt.key)} was handed over after it had expired"
        kind = CHANNELS[attempt.lane.channel]
        allowed = CATEGORIES.named(attempt.category).tries or kind.retry.retries + 1
        if attempt.number > allowed:
            yield f"{place_of(attempt.key)} was tried for the {attempt.number}th time, {allowed} are allowed"
        if attempt.lane.channel == "email" and attempt.address != f"{attempt.recipient.user_id}@example.org":
            yield f"{place_of(attempt.key)} was sent to somebody else"


def _is_idempotent(evidence: Evidence) -> Iterator[str]:
    kept: dict[str, list[BatchFacts]] = {}
    for batch in evidence.facts.batches.values():
        kept.setdefault(batch.name, []).append(batch)
    for ask in evidence.asks:
        batches = kept.pop(ask.name, [])
        if len(batches) > (1 if ask.key is not None else ask.calls):
            yield f"{ask.name}: {ask.calls} calls with one key made {len(batches)} batches"
        if len(set(ask.batch_ids)) > 1:
            yield f"{ask.name}: one key was answered with {len(set(ask.batch_ids))} batches"
        if ask.key is not None and len(ask.answers) > 1:
            yield f"{ask.name}: {len(ask.answers)} calls with one key were accepted"
        if ask.refused and batches:
            yield f"{ask.name}: refused as {ask.refused}, and yet kept"
        yield from _are_answers_equal(ask)
    for name in kept:
        yield f"{name}: a batch that nobody asked for"


def _are_answers_equal(ask: Ask) -> Iterator[str]:
    """N4.2: the 409 shows the first answer, always the same one."""
    if None in ask.replays:
        yield f"{ask.name}: accepted before, it was said, but the batch is not known"
    heard = [_in_order(answer) for answer in (*map(msgspec.to_builtins, ask.answers), *ask.replays)]
    if any(answer != heard[0] for answer in heard):
        yield f"{ask.name}: the same call was answered differently: {heard}"


def _in_order(answer: Any) -> Any:
    """Rejections are a set to the caller."""
    if answer is None:
        return None
    return {**answer, "rejections": sorted(answer["rejections"], key=lambda one: (one["user_id"], one["code"]))}


# I6, one-way states


def _are_transitions_legal(evidence: Evidence) -> Iterator[str]:
    for raw, before, after in evidence.facts.transitions:
        allowed = TRANSITIONS[before]
        if Status.SENDING in allowed:  # shown while a delivery is leased, never stored
            allowed |= TRANSITIONS[Status.SENDING]
        if after not in allowed:
            yield f"{show(raw)} went from {before.name} to {after.name}"


# W27


def _is_poison_given_up(evidence: Evidence) -> Iterator[str]:
    for key, crashes in evidence.provider.poison_crashes.items():
        one = evidence.facts.notifications.get(key.notification_id)
        replayed = _replays(one, key)
        if crashes > MOST_CLAIMS * (1 + replayed):
            yield f"{place_of(key)} ended the process {crashes} times"


_CHECKS: Mapping[str, Sequence[Callable[[Evidence], Iterable[str]]]] = {
    "I1": (_is_finished, _are_sums_right),
    "I2": (_is_explained, _are_duplicates_owned, _are_tries_counted),
    "I3": (_are_copies_excused, _is_give_up_kept),
    "I4": (_is_asked_for,),
    "I5": (_is_idempotent,),
    "I6": (_are_transitions_legal,),
    "I9": (are_limits_kept, are_quiet_hours_kept, are_rests_kept, is_pace_kept),
    "N4.7": (are_pauses_kept,),
    "N5.5": (is_nothing_early,),
    "N9.1": (_is_no_content_repeated,),
    "W27": (_is_poison_given_up,),
}
