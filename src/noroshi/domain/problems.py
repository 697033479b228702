"""Errors a caller meets: each has a stable code, a status and what to do about it."""

from datetime import timedelta
from typing import Any

from msgspec import Struct


class ProblemKind(Struct, frozen=True):
    """A row of docs/errors.md."""

    code: str
    status: int
    title: str
    todo: str


PROBLEMS: dict[str, ProblemKind] = {
    kind.code: kind
    for kind in (
        ProblemKind("bad_json", 400, "The body is not JSON.", "Send a JSON object; check quotes, commas and nesting."),
        ProblemKind(
            "bad_event_signature",
            400,
            "The event is not signed by Stripe.",
            "Set NOROSHI_STRIPE_WEBHOOK_SECRET to the endpoint's own; pass the body on as it came.",
        ),
        ProblemKind("unauthorized", 401, "No valid API key.", "Send `Authorization: Bearer nrs_...` with a live key."),
        ProblemKind(
            "bad_signature",
            401,
            "The webhook is not signed as its provider signs.",
            "Set the secret of the provider's channel; pass the body on as it came.",
        ),
        ProblemKind("forbidden", 403, "The key may not do this.", "Use a key that has the scope named in `detail`."),
        ProblemKind("not_found", 404, "There is no such thing here.", "Check the id, and whose key it is."),
        ProblemKind("method_not_allowed", 405, "This path takes other methods.", "See `Allow` and /openapi.json."),
        ProblemKind(
            "idempotency_replay", 409, "This request was accepted before.", "Use `batch_id`; nothing was sent twice."
        ),
        ProblemKind("conflict", 409, "The thing is not in a state that allows this.", "Read it again, then decide."),
        ProblemKind(
            "too_large",
            413,
            "The body is over the limit.",
            "Send at most 5 MB, a request with its attachments at most 12 MB; split it.",
        ),
        ProblemKind("bad_field", 422, "A field is wrong.", "Correct the field that is named."),
        ProblemKind("unknown_field", 422, "A field is not known.", "Leave the named field out, or check its spelling."),
        ProblemKind("unknown_template", 422, "The template has no version.", "Create it: POST /api/v1/templates/{id}."),
        ProblemKind(
            "channel_not_configured",
            422,
            "No provider serves this channel.",
            "Configure a provider, or run `noroshi serve --dev` to catch messages.",
        ),
        ProblemKind(
            "strategy_not_supported", 422, "Only the strategy `all` is built.", "Leave `strategy` out or send `all`."
        ),
        ProblemKind("required_category", 422, "This category cannot be turned off.", "Leave it on."),
        ProblemKind("bad_template", 422, "The template cannot be stored.", "Mend what `detail` names."),
        ProblemKind(
            "idempotency_key_reused",
            422,
            "The key was used for another request.",
            "Send a new key with each new request.",
        ),
        ProblemKind("upgrade_required", 426, "Only a WebSocket is answered here.", "Open it with ws:// or wss://."),
        ProblemKind("too_many_requests", 429, "This key sends too fast.", "Wait as long as `Retry-After` says."),
        ProblemKind("internal", 500, "Something broke on our side.", "Try again; if it stays, report `request_id`."),
        ProblemKind("not_ready", 503, "The server is not ready.", "Mend what `problems` lists, then try again."),
        ProblemKind("overloaded", 503, "Too much is waiting.", "Wait as long as `Retry-After` says, then try again."),
        ProblemKind(
            "store_unavailable",
            503,
            "The store cannot commit.",
            "Free disk space or mend the disk, then send it again with the same idempotency key.",
        ),
    )
}


class ProblemError(Exception):
    """Raised anywhere on the way in; answered as problem+json. Never carries an address, token or key.
    `extra` are further members of the answer, `headers` its further header lines."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        retry_after: timedelta | None = None,
        extra: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.kind = PROBLEMS[code]
        self.detail = detail
        self.field = field
        self.retry_after = retry_after
        self.extra = extra or {}
        self.headers = headers or {}

    def __reduce__(self) -> tuple[Any, ...]:
        """It crosses from one process to another whole."""
        return _revived, (self.kind.code, self.detail, self.field, self.retry_after, self.extra, self.headers)


def _revived(code: str, detail: str, *more: Any) -> ProblemError:
    field, retry_after, extra, headers = more
    return ProblemError(code, detail, field=field, retry_after=retry_after, extra=extra, headers=headers)
