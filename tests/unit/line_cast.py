"""The cast of the LINE tests: attempts, and a network that answers as it was told."""

from collections.abc import Sequence
from typing import Any

import msgspec
from dispatch_cast import HANAKO, a_key
from tests.stand_ins.line.process import SECRET, TOKEN, user_id

from noroshi.domain.deliveries import Attempt
from noroshi.domain.lanes import Lane
from noroshi.domain.outgoing import Answered, OutgoingCall, OutgoingReply
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from noroshi.flow.send.line.messaging.channel import LineChannel
from noroshi.flow.send.line.messaging.settings import LineSettings

LINE = Lane("line", "line", Priority.NORMAL)
HELLO = Content("Your rice is ready.", title="Pick-up tomorrow")


def an_attempt(person: int = 1, content: Content = HELLO, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "key": a_key(person),
        "lane": LINE,
        "category": "general",
        "recipient": HANAKO,
        "address": user_id(person),
        "content": content,
        "number": 1,
        "expires_at": None,
    }
    return Attempt(**(values | changes))


def answered(status: int, body: Any = None, *, is_whole: bool = True, **headers: str) -> Answered:
    """A body that is no object stands there as it is; underscores in names are dashes."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode({} if body is None else body)
    return Answered(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw, is_whole)


class ToldOutgoing:
    """Answers each call with the next reply; the last one stays."""

    def __init__(self, *replies: OutgoingReply) -> None:
        self._replies = list(replies)
        self.calls: list[OutgoingCall] = []

    async def call(self, call: OutgoingCall) -> OutgoingReply:
        self.calls.append(call)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def a_channel(outgoing: ToldOutgoing, **settings: Any) -> LineChannel:
    return LineChannel(LineSettings(**({"token": TOKEN, "secrets": (SECRET,)} | settings)), outgoing)


def keys_of(calls: Sequence[OutgoingCall]) -> list[str]:
    return [call.headers["X-Line-Retry-Key"] for call in calls]
