"""Enqueued requests: what callers wrote in their own transactions, until it is a batch or dead."""

from enum import IntEnum

from msgspec import Struct

from noroshi.domain.ids import BatchId, RequestId, TenantId
from noroshi.domain.instants import Instant


class RequestState(IntEnum):
    """As the store keeps it."""

    WAITING = 0
    TAKEN = 1
    DEAD = 2


class Enqueued(Struct, frozen=True):
    """A waiting request, without its body."""

    tenant: TenantId
    request_id: RequestId
    created_by: str


class EnqueuedView(Struct, frozen=True):
    """For the API. `batch_id` is set once it was taken; `code` and `error` say why it is dead."""

    request_id: RequestId
    state: RequestState
    idempotency_key: str | None
    batch_id: BatchId | None
    code: str | None
    error: str | None
    created_at: Instant
    created_by: str
