"""Batches: what a caller asked for, once it is kept, and what has been decided of it so far."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from noroshi.domain.attachments import Attachment
from noroshi.domain.ids import BatchId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.priorities import Priority
from noroshi.domain.records import StatusCounts


class BatchHead(Struct, frozen=True, array_like=True):
    """What every notification of the batch shares, apart from its data. `content_hash` is over (template id,
    canonical data), 63 bits; `due_at` is the later of creation and `scheduled_at`."""

    tenant: TenantId
    batch_id: BatchId
    template_id: str
    channels: tuple[str, ...]
    priority: Priority
    category: str
    content_hash: int
    created_at: Instant
    due_at: Instant
    expires_at: Instant | None
    digest_key: str | None
    created_by: str


class NewBatch(Struct, frozen=True, array_like=True):
    """A batch about to be kept. `user_ids` are each there once; those named again are in `repeated`.
    `data` is the JSON text of the request's data. A key comes with the fingerprint of the request.
    `contents` are those of the attachments, in the same order."""

    head: BatchHead
    user_ids: Sequence[str]
    repeated: Sequence[str]
    data: bytes
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    is_scheduled: bool = False
    attachments: Sequence[Attachment] = ()
    contents: Sequence[bytes] = ()


class Rejection(Struct, frozen=True, array_like=True):
    user_id: str
    code: str


class Progress(Struct, array_like=True):
    """How far a batch has been decided: accepted + rejected + undecided = total, in recipients."""

    total: int
    accepted: int = 0
    rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    is_scheduled: bool = False

    @property
    def undecided(self) -> int:
        return self.total - self.accepted - self.rejected


class Earlier(Struct, frozen=True, array_like=True):
    """The batch that already holds the idempotency key, and whether the request was the same."""

    batch_id: BatchId
    is_same: bool


class BatchView(Struct, frozen=True):
    """A batch as kept, for the API. `cancelled_at` is set once it was withdrawn."""

    head: BatchHead
    progress: Progress
    data: dict[str, Any]
    cancelled_at: Instant | None
    answer: bytes | None
    attachments: tuple[Attachment, ...] = ()


class BatchSummary(Struct, frozen=True):
    """A batch in a list. `counts` is None where counting its notifications would take long."""

    head: BatchHead
    progress: Progress
    cancelled_at: Instant | None
    counts: StatusCounts | None
