"""Addressing in the store: candidates in, facts read and changes written, in a fixed number of statements."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import msgspec

from noroshi.domain.addressing import Candidate, LedgerRow, Person, SliceChanges, SliceFacts, Usage
from noroshi.domain.batches import BatchHead
from noroshi.domain.ids import NotificationId, TenantId, notification_id
from noroshi.domain.instants import Instant, plus
from noroshi.domain.people import EndpointFact, Preferences
from noroshi.domain.templates import TemplateChoice
from noroshi.storage.turns import Group, Turn

_HOUR = timedelta(hours=-1)
_DAY = timedelta(hours=-24)
_CONTENT_WINDOW = timedelta(minutes=-5)
_NEVER = Instant(0)
_BATCH = attrgetter("batch")
_USER_ID = attrgetter("user_id")

_Place = tuple[TenantId, str, str]
"""A user on a channel."""

_decode_preferences = lru_cache(maxsize=10_000)(msgspec.json.Decoder(Preferences).decode)
"""Many people wish the same: the same text gives the same, frozen, preferences."""


async def read_facts(turn: Turn, candidates: list[Candidate]) -> SliceFacts:
    """Everything the decision needs to know about these candidates."""
    by_batch = [(batch, list(some)) for batch, some in groupby(candidates, _BATCH)]
    wanted: dict[TenantId, set[str]] = {}
    for batch, some in by_batch:
        wanted.setdefault(batch.tenant, set()).update(map(_USER_ID, some))
    people: list[Group] = [((tenant,), list(users)) for tenant, users in wanted.items()]
    await turn.lock_people(people)
    usage, duplicates = await _read_usage(turn, by_batch)
    return SliceFacts(
        now=turn.now,
        candidates=candidates,
        people=await _read_people(turn, people),
        usage=usage,
        duplicates=duplicates,
        templates=await _read_templates(turn, {(batch.tenant, batch.template_id) for batch, _ in by_batch}),
    )


async def _read_people(turn: Turn, asked: Sequence[Group]) -> dict[tuple[TenantId, str], Person]:
    people: dict[tuple[TenantId, str], Person] = {}
    for row in await turn.rows_for_people("people_of_slice", asked):
        tenant, user_id, locale, timezone, text, endpoint_id, kind, is_active, is_suppressed = row
        fact = () if kind is None else (EndpointFact(endpoint_id, kind, is_active == 1, is_suppressed == 1),)
        known = people.get((tenant, user_id))
        if known is None:
            wishes = None if text is None else _decode_preferences(text)
            people[tenant, user_id] = Person(locale, timezone, wishes, fact)
        else:
            people[tenant, user_id] = msgspec.structs.replace(known, endpoints=known.endpoints + fact)
    return people


async def _read_usage(
    turn: Turn, by_batch: Sequence[tuple[BatchHead, list[Candidate]]]
) -> tuple[dict[_Place, Usage], set[NotificationId]]:
    people: dict[tuple[TenantId, str], dict[str, None]] = {}
    for batch, some in by_batch:
        users = dict.fromkeys(map(_USER_ID, some))
        for channel in batch.channels:
            people.setdefault((batch.tenant, channel), {}).update(users)
    asked: list[Group] = [(same, list(users)) for same, users in people.items()]
    places = [(tenant, user_id, channel) for (tenant, channel), users in people.items() for user_id in users]
    now = turn.now
    windows = (plus(now, _HOUR), plus(now, _CONTENT_WINDOW), plus(now, _DAY))
    contents = list({batch.content_hash for batch, _ in by_batch})
    usage: dict[_Place, Usage] = {}
    alike: dict[_Place, str] = {}
    for place, hour, day, oldest_in_hour, oldest_in_day, found in await turn.rows_for_people(
        "usage_of_slice", asked, *windows, contents
    ):
        usage[places[place]] = Usage(hour, day, oldest_in_hour or _NEVER, oldest_in_day or _NEVER)
        if found is not None:
            alike[places[place]] = found
    return usage, _duplicates(by_batch, alike) if alike else set()


def _duplicates(
    by_batch: Sequence[tuple[BatchHead, list[Candidate]]], alike: Mapping[_Place, str]
) -> set[NotificationId]:
    """Whose content stands there already, from another batch. `alike` has contents with the batches they are of."""
    duplicates: set[NotificationId] = set()
    for batch, some in by_batch:
        for number, channel in enumerate(batch.channels):
            for candidate in some:
                found = alike.get((batch.tenant, candidate.user_id, channel), "")
                if any(_is_of_another(one, batch) for one in found.split(",") if one):
                    duplicates.add(notification_id(batch.batch_id, candidate.position, number))
    return duplicates


def _is_of_another(one: str, batch: BatchHead) -> bool:
    content, _, of = one.partition(" ")
    return int(content) == batch.content_hash and of != batch.batch_id[:13].hex()


async def _read_templates(
    turn: Turn, wanted: AbstractSet[tuple[TenantId, str]]
) -> dict[tuple[TenantId, str], list[TemplateChoice]]:
    choices: dict[tuple[TenantId, str], list[TemplateChoice]] = {}
    for tenant, template_id, channel, locale, variant, row, _ in await turn.rows_for(
        "templates_of_slice", list(wanted)
    ):
        choices.setdefault((tenant, template_id), []).append(TemplateChoice(channel, locale, variant, row))
    return choices


async def write_changes(turn: Turn, candidates: Sequence[Candidate], changes: SliceChanges) -> None:
    """Writes what was decided; the holds of released candidates end in the same commit."""
    released = [
        (c.batch.tenant, notification_id(c.batch.batch_id, c.position, c.held_channel))
        for c in candidates
        if c.held_channel is not None
    ]
    if released:
        await turn.run_many("remove_hold", released)
        await turn.run_many("put_notification", changes.notifications)
    else:
        await turn.run_many("insert_notification", changes.notifications)
    await turn.run_many("put_delivery", changes.deliveries)
    await turn.run_many("put_hold", changes.holds)
    await write_ledger(turn, changes.ledger)
    first = turn.next_number(len(changes.dead_letters))
    await turn.run_many("put_dead_letter", [(*row, first + n) for n, row in enumerate(changes.dead_letters)])


async def write_ledger(turn: Turn, rows: Sequence[LedgerRow]) -> None:
    """Appends to the ledger, in order."""
    first = turn.next_number(len(rows))
    await turn.run_many("put_ledger", [(*row, first + n) for n, row in enumerate(rows)])
