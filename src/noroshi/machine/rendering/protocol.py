"""What the renderer and its child say to each other: orders one way, answers the other, each a msgpack frame
behind its length."""

from struct import Struct as Layout
from typing import Any

import msgspec

from noroshi.domain.templates import Content, TemplateVersion

LENGTH = Layout("<I")
HELLO = LENGTH.pack(0)
"""The child's first word: it is ready."""


class Lesson(msgspec.Struct, array_like=True, frozen=True):
    """A template version, encoded, and the number that groups name it by from now on."""

    number: int
    version: msgspec.Raw


class Group(msgspec.Struct, array_like=True, frozen=True):
    """Recipients of the same version and data. They and the data are encoded beforehand, each on its own, so that
    one that cannot be encoded spoils nothing else."""

    number: int
    data: msgspec.Raw
    recipients: msgspec.Raw


class Order(msgspec.Struct, array_like=True, frozen=True):
    """`learn` comes before the groups, `forget` after them. A streamed order is answered recipient by recipient:
    the first without an answer is then the one that the child died of. `checks` are encoded versions that are to be
    stored, each answered on its own."""

    groups: list[Group] = []
    learn: list[Lesson] = []
    forget: list[int] = []
    is_streamed: bool = False
    checks: list[msgspec.Raw] = []


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """A result for each recipient in order, a string being why it failed; fewer than asked for if it took long or
    made much, then the rest is to be asked for again. `fault` answers a check."""

    results: list[Content | str] = []
    fault: str | None = None


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_version = msgspec.msgpack.Decoder(TemplateVersion).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
decode_any = msgspec.msgpack.Decoder().decode


def frame(message: Any) -> bytes:
    body = encode(message)
    return LENGTH.pack(len(body)) + body
