"""Facts about a slice in, what becomes of each recipient out: a pure function, run inside the store's commit.

The order is that of N5.1: known user, category, channel on, endpoint usable, template, expiry, duplicate, quiet
hours, limits, lane. Nothing that will not be sent takes quota.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from noroshi.domain.addressing import (
    Candidate,
    DeadLetterRow,
    DeliveryRow,
    HoldRow,
    LedgerRow,
    NotificationRow,
    Person,
    Rejected,
    SliceChanges,
    SliceFacts,
    Standing,
    Usage,
)
from noroshi.domain.batches import BatchHead
from noroshi.domain.categories import Categories, Category, OverLimit
from noroshi.domain.channels import CHANNELS, NO_ENDPOINT, endpoint_kind
from noroshi.domain.ids import EndpointId, NotificationId, TenantId, notification_id
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.limits import limit_for, over_until
from noroshi.domain.people import Preferences
from noroshi.domain.priorities import URGENT, Priority
from noroshi.domain.quiet_hours import quiet_until
from noroshi.domain.reasons import HoldReason, Reason
from noroshi.domain.states import Status
from noroshi.domain.templates import TemplateChoice, choose

_NO_WISHES = Preferences()
_NO_USAGE = Usage(0, 0, Instant(0), Instant(0))
_THE_USER = (EndpointId(0),)
_MOST_SORTS = 1000


class Sort:
    """What holds for every batch of one category, priority and set of channels, worked out once."""

    __slots__ = ("category", "is_critical", "is_on", "is_required", "is_urgent", "kinds", "lanes", "lineage")

    def __init__(
        self,
        category: str,
        priority: Priority,
        channels: tuple[str, ...],
        categories: Categories,
        accounts: Mapping[str, str],
    ) -> None:
        self.lineage: list[Category] = categories.lineage(category)
        self.category = self.lineage[0]
        self.is_required = any(category.is_required for category in self.lineage)
        self.is_on = all(category.is_on for category in self.lineage)
        self.is_urgent = priority in URGENT
        self.is_critical = priority is Priority.CRITICAL
        self.kinds = [endpoint_kind(name) for name in channels]
        self.lanes = [Lane(name, accounts.get(name, "none"), priority).name for name in channels]

    def wants(self, wishes: Preferences) -> bool:
        """Whether the person has the category on: a parent that is off turns its children off."""
        if self.is_required:
            return True
        chosen = wishes.categories
        if not chosen:
            return self.is_on
        return all(chosen.get(category.name, category.is_on) for category in self.lineage)

    def wants_on(self, wishes: Preferences, channel: str) -> bool:
        if wishes.channels and not wishes.channels.get(channel, True):
            return False
        by_category = wishes.category_channels
        return not by_category or all(
            by_category[category.name].get(channel, True) for category in self.lineage if category.name in by_category
        )


class Picks:
    """Which version of one template each channel and locale of the slice gets."""

    __slots__ = ("_choices", "_chosen")

    def __init__(self, choices: Sequence[TemplateChoice]) -> None:
        self._choices = choices
        self._chosen: dict[tuple[str, str], TemplateChoice | None] = {}

    def template_for(self, channel: str, locale: str) -> TemplateChoice | None:
        key = (channel, locale)
        if key not in self._chosen:
            self._chosen[key] = choose(self._choices, channel, locale)
        return self._chosen[key]


class _Earlier(NamedTuple):
    """What one person got on one channel from earlier in the same slice: its contents, and how many count."""

    contents: tuple[int, ...]
    counted: int

    def and_then(self, other: "_Earlier") -> "_Earlier":
        return _Earlier(self.contents + other.contents, self.counted + other.counted)


_NOTHING = _Earlier((), 0)


class Plan:
    """One batch of a slice: its sort, its expiry and its templates, and what each who gets it has got."""

    __slots__ = ("batch", "expires_at", "held", "picks", "queued", "sort")

    def __init__(self, batch: BatchHead, sort: Sort, picks: Picks) -> None:
        self.batch = batch
        self.sort = sort
        self.expires_at = _expiry(batch, sort.category)
        self.picks = picks
        self.held = _Earlier((batch.content_hash,), 0)
        self.queued = _Earlier((batch.content_hash,), 0 if sort.is_critical else 1)


def _expiry(batch: BatchHead, category: Category) -> Instant | None:
    if category.expires_after is None:
        return batch.expires_at
    by_category = plus(batch.due_at, category.expires_after)
    return by_category if batch.expires_at is None else min(batch.expires_at, by_category)


class Addresser:
    """Decides slices. `accounts` names the provider account that serves each channel."""

    def __init__(self, categories: Categories, accounts: Mapping[str, str], default_locale: str) -> None:
        self._categories = categories
        self._accounts = accounts
        self._default_locale = default_locale
        self._sorts: dict[tuple[str, Priority, tuple[str, ...]], Sort] = {}

    def decide(self, facts: SliceFacts) -> SliceChanges:
        slice_ = _Slice(facts, self._default_locale)
        picks: dict[tuple[TenantId, str], Picks] = {}
        plan: Plan | None = None
        for candidate in facts.candidates:
            batch = candidate.batch
            if plan is None or plan.batch is not batch:  # those of one batch stand together
                template = (batch.tenant, batch.template_id)
                if template not in picks:
                    picks[template] = Picks(facts.templates.get(template, ()))
                plan = Plan(batch, self._sort(batch), picks[template])
            slice_.decide(plan, candidate)
        return slice_.changes

    def _sort(self, batch: BatchHead) -> Sort:
        key = (batch.category, batch.priority, batch.channels)
        found = self._sorts.get(key)
        if found is None:
            if len(self._sorts) >= _MOST_SORTS:
                self._sorts.clear()
            found = self._sorts[key] = Sort(*key, self._categories, self._accounts)
        return found


class _Slice:
    """The decision under way: what earlier recipients of the slice took counts for the later ones."""

    def __init__(self, facts: SliceFacts, default_locale: str) -> None:
        self.changes = SliceChanges()
        self._people = facts.people
        self._usage = facts.usage
        self._duplicates = facts.duplicates
        self._now = facts.now
        self._default_locale = default_locale
        self._earlier: dict[tuple[TenantId, str, str], _Earlier] = {}

    def decide(self, plan: Plan, candidate: Candidate) -> None:
        batch, position, user_id, held_channel = candidate
        person = self._people.get((batch.tenant, user_id))
        if held_channel is not None:
            self._decide_held(plan, candidate, person, held_channel)
            return
        if person is None:
            self.changes.rejected.append(Rejected(batch.batch_id, position, user_id, Reason.UNKNOWN_USER))
            return
        first = code = self._decide_channel(plan, candidate, person, 0)
        for number in range(1, len(batch.channels)):
            code = self._decide_channel(plan, candidate, person, number) and code
        if code is not None and first is not None:
            self.changes.rejected.append(Rejected(batch.batch_id, position, user_id, first))

    def _decide_held(self, plan: Plan, candidate: Candidate, person: Person | None, number: int) -> None:
        if person is None:  # gone since
            this = notification_id(plan.batch.batch_id, candidate.position, number)
            self._suppress(plan, candidate, this, plan.batch.channels[number], Reason.UNKNOWN_USER)
        else:
            self._decide_channel(plan, candidate, person, number)

    def _decide_channel(self, plan: Plan, candidate: Candidate, person: Person, number: int) -> str | None:
        """Writes what becomes of one notification; answers why not, or None."""
        batch, sort = plan.batch, plan.sort
        channel = batch.channels[number]
        this = notification_id(batch.batch_id, candidate.position, number)
        wishes = person.preferences or _NO_WISHES
        if not sort.wants(wishes):
            return self._suppress(plan, candidate, this, channel, Reason.CATEGORY_OFF)
        if not sort.wants_on(wishes, channel):
            return self._suppress(plan, candidate, this, channel, Reason.CHANNEL_OFF)
        endpoints, missing = _usable(person, channel, sort.kinds[number])
        if missing is not None:
            return self._suppress(plan, candidate, this, channel, missing)
        template = plan.picks.template_for(channel, person.locale or self._default_locale)
        if template is None:
            return self._dead_letter(plan, candidate, this, number)
        if plan.expires_at is not None and plan.expires_at <= self._now:
            return self._suppress(plan, candidate, this, channel, Reason.EXPIRED)
        place = (batch.tenant, candidate.user_id, channel)
        earlier = self._earlier.get(place, _NOTHING)
        if this in self._duplicates or batch.content_hash in earlier.contents:
            return self._suppress(plan, candidate, this, channel, Reason.DUPLICATE)
        if not sort.is_urgent:
            until = quiet_until(wishes.quiet_hours, person.timezone, self._now)
            if until is not None:
                self._earlier[place] = plan.held if earlier is _NOTHING else earlier.and_then(plan.held)
                self._hold(plan, candidate, this, channel, until, HoldReason.QUIET_HOURS)
                return None
        if not sort.is_critical:
            limit = limit_for(channel, batch.priority, wishes.frequency_limit.get(channel))
            usage = self._usage.get(place, _NO_USAGE)
            over = over_until(usage if earlier is _NOTHING else self._added(usage, earlier.counted), limit, self._now)
            if over is not None:
                if sort.category.over_limit is OverLimit.SUPPRESS:
                    return self._suppress(plan, candidate, this, channel, Reason.RATE_LIMITED)
                self._earlier[place] = plan.held if earlier is _NOTHING else earlier.and_then(plan.held)
                self._hold(plan, candidate, this, channel, over, HoldReason.RATE_LIMITED)
                return None
        self._earlier[place] = plan.queued if earlier is _NOTHING else earlier.and_then(plan.queued)
        self._queue(plan, candidate, this, number, endpoints, template)
        return None

    def _added(self, usage: Usage, counted: int) -> Usage:
        """With what was counted in this slice."""
        if not counted:
            return usage
        return Usage(
            usage.hour + counted,
            usage.day + counted,
            usage.oldest_in_hour if usage.hour else self._now,
            usage.oldest_in_day if usage.day else self._now,
        )

    def _queue(
        self,
        plan: Plan,
        candidate: Candidate,
        this: NotificationId,
        number: int,
        endpoints: Sequence[EndpointId],
        template: TemplateChoice,
    ) -> None:
        batch, sort, changes, now = plan.batch, plan.sort, self.changes, self._now
        user_id, channel, lane, row = candidate.user_id, batch.channels[number], sort.lanes[number], template.row
        standing = Standing.KEPT if sort.is_critical else Standing.COUNTED
        changes.notifications.append(
            NotificationRow(
                batch.tenant, this, user_id, channel, Status.QUEUED, None, now, batch.content_hash, standing, row
            )
        )
        is_released = candidate.held_channel is not None
        wanted_at = now if is_released else batch.due_at
        for endpoint in endpoints:
            changes.deliveries.append(
                DeliveryRow(
                    batch.tenant, this, endpoint, lane, now, user_id, batch.category, row, plan.expires_at, wanted_at
                )
            )
        if is_released:
            changes.ledger.append(LedgerRow(batch.tenant, this, now, "released", None))

    def _put(
        self,
        plan: Plan,
        candidate: Candidate,
        this: NotificationId,
        channel: str,
        status: Status,
        reason: str,
        standing: int,
    ) -> None:
        """Records a notification that is not queued."""
        decided = (status, reason, self._now, plan.batch.content_hash, standing, None)
        self.changes.notifications.append(
            NotificationRow(plan.batch.tenant, this, candidate.user_id, channel, *decided)
        )

    def _suppress(self, plan: Plan, candidate: Candidate, this: NotificationId, channel: str, reason: str) -> str:
        self._put(plan, candidate, this, channel, Status.SUPPRESSED, reason, Standing.NONE)
        self._record(plan, this, "suppressed", {"code": reason})
        return reason

    def _hold(
        self, plan: Plan, candidate: Candidate, this: NotificationId, channel: str, until: Instant, reason: str
    ) -> None:
        self._put(plan, candidate, this, channel, Status.SCHEDULED, reason, Standing.KEPT)
        self.changes.holds.append(HoldRow(plan.batch.tenant, this, until, reason))
        self._record(plan, this, "deferred", {"code": reason, "due_at": until})

    def _dead_letter(self, plan: Plan, candidate: Candidate, this: NotificationId, number: int) -> str:
        batch, code = plan.batch, Reason.TEMPLATE_MISSING
        channel = batch.channels[number]
        error = f"template {batch.template_id} has no version for {channel}"
        self._put(plan, candidate, this, channel, Status.DEAD_LETTERED, code, Standing.NONE)
        self.changes.dead_letters.append(
            DeadLetterRow(
                batch.tenant,
                this,
                EndpointId(0),
                plan.sort.lanes[number],
                candidate.user_id,
                batch.category,
                None,
                plan.expires_at,
                batch.due_at,
                code,
                error,
                0,
                self._now,
            )
        )
        self._record(plan, this, "dead_lettered", {"code": code, "error": error})
        return code

    def _record(self, plan: Plan, this: NotificationId, kind: str, detail: dict[str, str | int]) -> None:
        text = msgspec.json.encode(detail).decode()
        self.changes.ledger.append(LedgerRow(plan.batch.tenant, this, self._now, kind, text))


def _usable(person: Person, channel: str, kind: str | None) -> tuple[Sequence[EndpointId], str | None]:
    """The endpoints the channel can reach the person by, or why there is none."""
    if kind is None:
        return _THE_USER, None
    usable: list[EndpointId] = []
    is_suppressed = False
    for endpoint in person.endpoints:
        if endpoint.kind == kind:
            if endpoint.is_suppressed:
                is_suppressed = True
            elif endpoint.is_active:
                usable.append(endpoint.endpoint_id)
    if usable:
        return usable, None
    return (), Reason.SUPPRESSED if is_suppressed else NO_ENDPOINT[CHANNELS[channel].needs]
