"""A caller's request in, a batch ready to be kept out, or a problem that names the field."""

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET

from noroshi.domain.attachments import CARRIED_BY, AttachmentBody, described
from noroshi.domain.batches import BatchHead, NewBatch
from noroshi.domain.bodies import MAX_BODY
from noroshi.domain.ids import BatchId
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import Caller, NotificationRequest, check_request, instant_of

_canonical = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode


def choose_key(request: NotificationRequest, header: str | None) -> str | None:
    """The idempotency key: body field or header; both, if they agree (N4.2)."""
    if header is None:
        return request.idempotency_key
    if not 1 <= len(header) <= 255 or not header.isprintable():
        raise ProblemError("bad_field", "Idempotency-Key takes 1 to 255 printable characters", field="Idempotency-Key")
    if request.idempotency_key not in (None, header):
        raise ProblemError("bad_field", "the body's key and the Idempotency-Key header differ", field="idempotency_key")
    return header


def prepare(
    caller: Caller,
    request: NotificationRequest,
    key: str | None,
    template_channels: tuple[str, ...],
    served: Collection[str],
    now: Instant,
    batch_id: BatchId,
) -> NewBatch:
    """Checks what the shape alone cannot say. `template_channels`: those the template has a version for;
    `served`: those some provider (or the catcher) serves."""
    check_request(request)
    channels = _channels(request, template_channels, served)
    given = request.attachments or ()
    if given and CARRIED_BY.isdisjoint(channels):
        raise ProblemError(
            "bad_field", "only e-mail carries attachments; email is not among the channels", field="attachments"
        )
    data = _encode(request.data)
    if len(data) > MAX_BODY:
        raise ProblemError("bad_field", f"over {MAX_BODY:,} bytes", field="data")
    scheduled_at = instant_of(request.scheduled_at, "scheduled_at")
    is_scheduled = scheduled_at is not None and scheduled_at > now
    due_at = scheduled_at if is_scheduled and scheduled_at is not None else now
    head = BatchHead(
        tenant=caller.tenant,
        batch_id=batch_id,
        template_id=request.template_id,
        channels=channels,
        priority=request.priority,
        category=request.category,
        content_hash=content_hash(request),
        created_at=now,
        due_at=due_at,
        expires_at=instant_of(request.expires_at, "expires_at"),
        digest_key=request.digest_key,
        created_by=caller.key_id,
    )
    unique = list(dict.fromkeys(request.user_ids))
    return NewBatch(
        head=head,
        user_ids=unique,
        repeated=_repeats(request.user_ids) if len(unique) < len(request.user_ids) else (),
        data=data,
        idempotency_key=key,
        fingerprint=fingerprint(request) if key is not None else b"",
        is_scheduled=is_scheduled,
        attachments=described(given),
        contents=[one.content for one in given],
    )


def content_hash(request: NotificationRequest) -> int:
    """63 bits over (template id, canonical data) and the attachments, if any: nothing need be rendered to see a
    duplicate."""
    said: tuple[Any, ...] = (request.template_id, request.data)
    if request.attachments:
        said = (*said, _digests(request.attachments))
    digest = blake2b(_canonical(said), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def fingerprint(request: NotificationRequest) -> bytes:
    """Over the decoded request without the key."""
    plain = msgspec.structs.replace(request, idempotency_key=None)
    digest = blake2b(digest_size=16)
    if request.attachments:
        plain = msgspec.structs.replace(plain, attachments=UNSET)
        digest.update(_canonical(_digests(request.attachments)))
    digest.update(_canonical(plain))
    return digest.digest()


def _digests(given: Sequence[AttachmentBody]) -> list[tuple[str | None, ...]]:
    """The attachments, each with a digest in place of its content."""
    return [
        (one.filename, one.content_type, one.content_id, blake2b(one.content, digest_size=16).hexdigest())
        for one in given
    ]


def _repeats(user_ids: list[str]) -> list[str]:
    seen: set[str] = set()
    repeats: list[str] = []
    for user_id in user_ids:
        if user_id in seen:
            repeats.append(user_id)
        seen.add(user_id)
    return repeats


def _channels(
    request: NotificationRequest, template_channels: tuple[str, ...], served: Collection[str]
) -> tuple[str, ...]:
    if not template_channels:
        raise ProblemError("unknown_template", f"no template {request.template_id}", field="template_id")
    if request.channels is msgspec.UNSET:
        usable = tuple(channel for channel in template_channels if channel in served)
        if not usable:
            raise ProblemError(
                "channel_not_configured", "no provider serves any channel of the template", field="channels"
            )
        return usable
    for number, channel in enumerate(request.channels):
        if channel not in served:
            raise ProblemError("channel_not_configured", f"no provider serves {channel}", field=f"channels[{number}]")
    return tuple(dict.fromkeys(request.channels))
