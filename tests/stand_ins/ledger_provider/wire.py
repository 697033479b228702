"""What goes over the socket between the ledger provider and its clients: frames of four length bytes and msgpack."""

import asyncio
import hashlib
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.instants import Instant, moment_of
from noroshi.domain.templates import Content

LONGEST_FRAME = 64 * 1024 * 1024

T = TypeVar("T")


class Message(Struct, frozen=True, array_like=True):
    """One message as the provider gets it; the address stays out of the ledger. `sender` is the life that sends it,
    where a test tells several apart."""

    key: DeliveryKey
    user_id: str
    channel: str
    content_hash: str
    number: int
    sender: str = ""


class Conduct(Struct, frozen=True):
    """How the provider behaves until it is told otherwise, or for the next `requests` requests.

    `users` limits what is answered per message (`error_share`, `status`) to theirs; delay, hanging, dropping and
    limiting befall any request that holds a message of theirs. `retry_after` is what stands in the header of a
    429, word for word; `http_date_in` makes it the HTTP date so far ahead instead."""

    delay: timedelta = timedelta(0)
    error_share: float = 0.0
    status: int = 202
    is_hanging: bool = False
    is_dropping: bool = False
    is_limiting: bool = False
    retry_after: str | None = None
    http_date_in: timedelta | None = None
    users: frozenset[str] | None = None
    requests: int | None = None

    def concerns(self, user_id: str) -> bool:
        return self.users is None or user_id in self.users


class Send(Struct, frozen=True, tag="send"):
    messages: list[Message]


class Behave(Struct, frozen=True, tag="behave"):
    conduct: Conduct


class AwaitAlone(Struct, frozen=True, tag="await_alone"):
    """Answered once no other connection is open: whatever a dead client had sent is then dealt with."""


class AwaitFlight(Struct, frozen=True, tag="await_flight"):
    """Answered once a request of this sender is in hand and not answered yet."""

    sender: str


Request = Send | Behave | AwaitAlone | AwaitFlight


class Answer(Struct, frozen=True, array_like=True):
    """What an HTTP provider would answer to one message: 202 with its id, or a status that says why not."""

    status: int
    message_id: str = ""
    retry_after: str | None = None


class Reply(Struct, frozen=True):
    """One answer per message, in their order; `date` is the provider's clock, as in an HTTP answer."""

    date: Instant
    answers: list[Answer] = field(default_factory=list)


def content_hash(content: Content) -> str:
    """What the ledger keeps of a content: enough to tell one from another."""
    return hashlib.sha256(msgspec.msgpack.encode((content.subject, content.title, content.body))).hexdigest()[:16]


def wait_of(retry_after: str | None, date: Instant) -> timedelta | None:
    """How long a Retry-After (seconds or HTTP date) tells us to wait from `date` on; None if it says nothing usable."""
    if retry_after is None:
        return None
    try:
        seconds = int(retry_after)
    except ValueError:
        try:
            wait = parsedate_to_datetime(retry_after) - moment_of(date)
        except ValueError:
            return None
    else:
        wait = timedelta(seconds=seconds)
    return wait if wait > timedelta(0) else None


def frame(value: Struct) -> bytes:
    body = msgspec.msgpack.encode(value)
    return len(body).to_bytes(4, "big") + body


async def read_frame(reader: asyncio.StreamReader, kind: type[T]) -> T:
    """The next frame as `kind` (a struct or a union of them); IncompleteReadError if the stream ends first."""
    length = int.from_bytes(await reader.readexactly(4), "big")
    if length > LONGEST_FRAME:
        raise ValueError(f"a frame of {length} bytes")
    return msgspec.msgpack.decode(await reader.readexactly(length), type=kind)
