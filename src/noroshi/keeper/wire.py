"""Frames: bodies with their heads in, bytes out, and bytes cut anywhere in, whole frames out."""

import pickle
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, NamedTuple

import msgspec

_HEAD = Layout("<IIBB")
_LARGEST_KEPT_BUFFER = 1_000_000


class Form(IntEnum):
    """How a body is written. PICKLED is for what msgpack has no words for, such as a whole number of 80 bits."""

    PACKED = 0
    PICKLED = 1
    ERROR = 2


class Frame(NamedTuple):
    """`number` joins an answer to its call; 0 is said unasked. `topic` is a call's method or a notice's kind."""

    number: int
    topic: int
    form: Form
    body: bytes


def _as_pickle(thing: Any) -> bytes:
    """A callable crosses as its name and what it is bound to: both ends run the same code."""
    if not callable(thing):
        raise NotImplementedError(f"{type(thing).__name__} does not cross")
    return _to_pickle(thing)


@lru_cache(maxsize=16)
def _to_pickle(thing: Callable[..., Any]) -> bytes:
    """Remembered, since the same callable goes with every call."""
    return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=16)
def _from_pickle(raw: bytes) -> Any:
    """Remembered, since the same callable comes with every call; what it remembers stays with it, too."""
    return pickle.loads(raw)  # noqa: S301 - both ends are one program; nobody else has the socket


def revive(_kind: type, raw: Any) -> Any:
    """msgspec's hook for what it does not know: the callables."""
    return _from_pickle(raw)


_pack = msgspec.msgpack.Encoder(enc_hook=_as_pickle).encode


def encode(number: int, topic: int, value: Any) -> bytes:
    try:
        form, body = Form.PACKED, _pack(value)
    except (OverflowError, NotImplementedError, TypeError):
        form, body = Form.PICKLED, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(body), number, topic, form) + body


def encode_error(number: int, error: BaseException) -> bytes:
    """The error itself where it can be sent, else its name."""
    try:
        body = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        pickle.loads(body)  # noqa: S301 - our own: an error may be written and yet not be read
    except Exception:  # noqa: BLE001 - an error that cannot be sent must not stop its answer
        body = pickle.dumps(RuntimeError(type(error).__name__))
    return _HEAD.pack(len(body), number, 0, Form.ERROR) + body


def decode(frame: Frame, unpack: Callable[[bytes], Any]) -> Any:
    """What was encoded, or the error, as a value."""
    if frame.form is Form.PACKED:
        return unpack(frame.body)
    return pickle.loads(frame.body)  # noqa: S301 - as above


class Splitter:
    """Holds what has come of the next frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        held = self._held
        held += data
        start, end = 0, len(held)
        while end - start >= _HEAD.size:
            length, number, topic, form = _HEAD.unpack_from(held, start)
            body = start + _HEAD.size
            if end - body < length:
                break
            start = body + length
            yield Frame(number, topic, Form(form), bytes(held[body:start]))
        if start == end > _LARGEST_KEPT_BUFFER:
            self._held = bytearray()
        else:
            del held[:start]
