"""Replies: what a page answers in; status, headers and bytes on the wire out, with policies that trust nobody else."""

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct
from starlette.types import Receive, Send

Headers = tuple[tuple[str, str], ...]

HTML = "text/html; charset=utf-8"

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_LETTER_POLICY = (
    # Its links open beside us, in a window of their own; nothing in it runs, and it has no origin.
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:{images}; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
_EVERY_REPLY: Headers = (
    ("x-content-type-options", "nosniff"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)


class Reply(Struct, frozen=True):
    body: bytes = b""
    status: int = 200
    media: str = HTML
    headers: Headers = ()
    policy: str = PAGE_POLICY
    caching: str = "no-store"
    # Not `no-referrer`: browsers then send `Origin: null` with our own forms, and the check of it would mean nothing.
    referrer: str = "same-origin"

    def lines(self) -> list[tuple[bytes, bytes]]:
        named = (
            ("content-type", self.media),
            ("content-security-policy", self.policy),
            ("x-frame-options", "SAMEORIGIN" if "frame-ancestors 'self'" in self.policy else "DENY"),
            ("referrer-policy", self.referrer),
            ("cache-control", self.caching),
            *_EVERY_REPLY,
            *self.headers,
        )
        return [(name.encode(), value.encode()) for name, value in named]


class Stream(Struct, frozen=True):
    """Server-sent events for as long as the browser listens; an empty chunk is a look at whether it still does."""

    events: AsyncIterator[bytes]


def redirect(to: str, *cookies: str) -> Reply:
    return Reply(status=303, headers=(("location", to), *(("set-cookie", cookie) for cookie in cookies)))


def letter(document: bytes, *, has_images: bool) -> Reply:
    """Somebody's e-mail as a document of its own, in which nothing runs."""
    policy = _LETTER_POLICY.format(images=" https: http:" if has_images else "")
    return Reply(document, policy=policy, referrer="no-referrer")


async def deliver(reply: Reply, send: Send) -> None:
    lines = [*reply.lines(), (b"content-length", str(len(reply.body)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": lines})
    await send({"type": "http.response.body", "body": reply.body})


async def deliver_stream(stream: Stream, receive: Receive, send: Send, *, is_only_asked_for: bool = False) -> None:
    """`is_only_asked_for`: by HEAD, which has no end to wait for."""
    head = Reply(media="text/event-stream; charset=utf-8", headers=(("x-accel-buffering", "no"),))
    if is_only_asked_for:
        await deliver(head, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": head.lines()})
    gone = asyncio.create_task(_until_gone(receive))
    try:
        async for chunk in stream.events:
            if gone.done():
                return
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
