"""Dead letters over the API: listed, inspected, replayed and discarded, singly and by filter (N6.3)."""

from msgspec import Struct

from noroshi.domain.ids import read, show
from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import DeadLetter, DeadLetterFilter
from noroshi.domain.requests import NameText, UserIdText
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import IdText, Moment, TrailEntry, show_trail

PAGE = 200
_PAGES_AT_MOST = 500


class DeadLetterQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    channel: NameText | None = None
    code: NameText | None = None
    category: NameText | None = None
    user_id: UserIdText | None = None
    batch_id: IdText | None = None


class FilterBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything named must match; without any filter `all` must be true."""

    channel: NameText | None = None
    code: NameText | None = None
    category: NameText | None = None
    user_id: UserIdText | None = None
    batch_id: IdText | None = None
    all: bool = False


class DeadLetterItem(Struct, frozen=True):
    """`endpoint_id` 0 means that it never had anything to be sent to."""

    dead_letter_id: int
    notification_id: IdText
    endpoint_id: int
    user_id: str
    channel: str
    priority: str
    category: str
    code: str
    error: str
    tries: int
    at: Moment
    trail: list[TrailEntry]


class ReplayAnswer(Struct, frozen=True):
    """`untouched` can have no delivery: nothing to send to, or no template. `is_complete` is false if so many
    matched that the call should be made again."""

    replayed: int
    untouched: int
    is_complete: bool


class DiscardAnswer(Struct, frozen=True):
    discarded: int
    is_complete: bool


async def list_dead_letters(desk: Desk, call: Call[DeadLetterQuery, None]) -> Page[DeadLetterItem]:
    query = call.query
    before = place_in(query.cursor, RowNumber)
    letters = await desk.dead_letters.list_dead_letters(call.tenant, _filter(query), before, query.limit + 1)
    return page_of(letters, query, lambda letter: letter.dead_letter_id, _show)


async def show_dead_letter(desk: Desk, call: Call[NoQuery, None]) -> DeadLetterItem:
    letter = await desk.dead_letters.get(call.tenant, call.number("dead_letter_id", "dead letter"))
    if letter is None:
        raise missing("dead letter")
    return _show(letter)


async def replay_dead_letter(desk: Desk, call: Call[NoQuery, None]) -> ReplayAnswer:
    only = call.number("dead_letter_id", "dead letter")
    replayed, untouched = await desk.dead_letters.replay(call.tenant, DeadLetterFilter(), only, call.caller.name, 1)
    if untouched:
        raise ProblemError("conflict", "It has nothing to be sent to, or no template: a replay would change nothing.")
    if not replayed:
        raise missing("dead letter")
    desk.announce_replayed()
    return ReplayAnswer(replayed, 0, is_complete=True)


async def discard_dead_letter(desk: Desk, call: Call[NoQuery, None]) -> None:
    only = call.number("dead_letter_id", "dead letter")
    if not await desk.dead_letters.discard(call.tenant, DeadLetterFilter(), only, call.caller.name, 1):
        raise missing("dead letter")


async def replay_dead_letters(desk: Desk, call: Call[NoQuery, FilterBody]) -> ReplayAnswer:
    """In pages, each its own commit. Bounded, since what is replayed may die again while the call goes on."""
    matching = _some(call.body)
    total = untouched = 0
    for _ in range(_PAGES_AT_MOST):
        replayed, untouched = await desk.dead_letters.replay(call.tenant, matching, None, call.caller.name, PAGE)
        total += replayed
        if replayed:
            desk.announce_replayed()
        else:
            return ReplayAnswer(total, untouched, is_complete=True)
    return ReplayAnswer(total, untouched, is_complete=False)


async def discard_dead_letters(desk: Desk, call: Call[NoQuery, FilterBody]) -> DiscardAnswer:
    matching = _some(call.body)
    total = 0
    for _ in range(_PAGES_AT_MOST):
        discarded = await desk.dead_letters.discard(call.tenant, matching, None, call.caller.name, PAGE)
        total += discarded
        if not discarded:
            return DiscardAnswer(total, is_complete=True)
    return DiscardAnswer(total, is_complete=False)


def _some(body: FilterBody) -> DeadLetterFilter:
    matching = _filter(body)
    if matching == DeadLetterFilter() and not body.all:
        raise ProblemError("bad_field", "Name at least one filter field, or send `all`: true.", field="all")
    return matching


def _filter(asked: DeadLetterQuery | FilterBody) -> DeadLetterFilter:
    batch_id = asked.batch_id
    if batch_id is not None:
        raw = read(batch_id)
        if raw is None:
            raise ProblemError("bad_field", "Expected a batch id (a UUID).", field="batch_id")
        batch_id = show(raw)
    return DeadLetterFilter(
        channel=asked.channel,
        code=asked.code,
        category=asked.category,
        user_id=asked.user_id,
        batch_id=batch_id,
    )


def _show(letter: DeadLetter) -> DeadLetterItem:
    return DeadLetterItem(
        dead_letter_id=letter.dead_letter_id,
        notification_id=show(letter.notification_id),
        endpoint_id=letter.endpoint_id,
        user_id=letter.user_id,
        channel=letter.channel,
        priority=letter.priority,
        category=letter.category,
        code=letter.code,
        error=letter.error,
        tries=letter.tries,
        at=iso(letter.at),
        trail=show_trail(letter.trail),
    )
