"""How nouns look on the wire: types and texts that several routes share."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from noroshi.domain.attachments import Attachment
from noroshi.domain.channels import CHANNELS
from noroshi.domain.ids import show
from noroshi.domain.instants import Instant, iso
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import LedgerEntry, NotificationView
from noroshi.domain.states import Status
from noroshi.entrypoints.api.sentences import sentence_of

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
IdText = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
StatusName = Annotated[str, Meta(extra_json_schema={"enum": [status.name for status in Status]})]
ChannelText = Annotated[str, Meta(extra_json_schema={"enum": list(CHANNELS)})]
LocaleText = Annotated[str, Meta(pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$", max_length=35)]


class AttachmentItem(Struct, frozen=True):
    """`size` is in bytes."""

    filename: str
    content_type: str
    size: int
    content_id: str | None


class TrailEntry(Struct, frozen=True):
    """One decision or outcome; `sentence` says it in words where there is something to explain."""

    at: Moment
    kind: str
    detail: dict[str, Any]
    sentence: str | None


class NotificationItem(Struct, frozen=True):
    """`due_at` is set while it waits; `reason` says why it was suppressed, held or dead-lettered."""

    notification_id: IdText
    batch_id: IdText
    user_id: str
    channel: str
    status: StatusName
    reason: str | None
    decided_at: Moment
    sent_at: Moment | None
    due_at: Moment | None
    retry_count: int
    error: str | None
    template_id: str | None
    template_version: int | None
    template_locale: str | None
    trail: list[TrailEntry]


def show_notification(view: NotificationView) -> NotificationItem:
    return NotificationItem(
        notification_id=show(view.notification_id),
        batch_id=show(view.batch_id),
        user_id=view.user_id,
        channel=view.channel,
        status=view.status.name,
        reason=view.reason,
        decided_at=iso(view.decided_at),
        sent_at=when(view.sent_at),
        due_at=when(view.due_at),
        retry_count=view.retry_count,
        error=view.error,
        template_id=view.template_id,
        template_version=view.template_version,
        template_locale=view.template_locale,
        trail=show_trail(view.trail),
    )


def show_trail(trail: tuple[LedgerEntry, ...]) -> list[TrailEntry]:
    return [TrailEntry(iso(entry.at), entry.kind, entry.detail, sentence_of(entry)) for entry in trail]


def show_attachments(attachments: Sequence[Attachment]) -> list[AttachmentItem]:
    return [AttachmentItem(one.filename, one.content_type, one.size, one.content_id) for one in attachments]


def when(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)


def known_channel(name: str, field: str) -> str:
    """The name, if it is a channel's."""
    if name not in CHANNELS:
        raise ProblemError("bad_field", f"Expected one of: {', '.join(CHANNELS)}.", field=field)
    return name
