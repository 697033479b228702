"""Origins: the page that a browser calls from in; whether it may, and the header lines that say so, out.

No cookie opens anything here, so a foreign page could do nothing without a pass; it is refused all the same.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from urllib.parse import urlsplit

from noroshi.entrypoints.api.answers import Answer, Headers

RawHeaders = Iterable[tuple[bytes, bytes]]

_ASKED = b"access-control-request-method"


def origin_of(headers: RawHeaders) -> str | None:
    """What only browsers send, and pages cannot forge."""
    return next((value.decode("latin-1").lower() for name, value in headers if name == b"origin"), None)


def is_ours(headers: RawHeaders, allowed: AbstractSet[str]) -> bool:
    """Whether the call comes from no page at all, from one of our own, or from a site that was allowed."""
    headers = list(headers)
    origin = origin_of(headers)
    if origin is None or origin in allowed:
        return True
    host = next((value.decode("latin-1").lower() for name, value in headers if name == b"host"), "")
    return bool(host) and urlsplit(origin).netloc == host


def sharing(headers: RawHeaders, allowed: AbstractSet[str]) -> Headers:
    """Lets the page of an allowed site read the answer; empty for every other."""
    origin = origin_of(headers)
    if origin is None or origin not in allowed:
        return ()
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"retry-after, x-request-id"),
        (b"vary", b"origin"),
    )


def preflight(headers: RawHeaders, allowed: AbstractSet[str], methods: Iterable[str]) -> Answer | None:
    """The answer to a browser that asks before it calls; None if it asks nothing, or may not."""
    headers = list(headers)
    shared = sharing(headers, allowed)
    if not shared or all(name != _ASKED for name, _ in headers):
        return None
    may = (
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-allow-headers", b"authorization, content-type, last-event-id"),
        (b"access-control-max-age", b"600"),
    )
    return Answer(204, b"", b"", (*shared, *may))
