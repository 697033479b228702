"""Misbehaviour on demand: how the catcher shall fail, for tests and demonstrations."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct


class Fault(StrEnum):
    """SLOW answers late; ERROR is a 503, TOO_MANY a 429; HANG never answers and keeps nothing; DROP_ANSWER
    keeps the message and then breaks off; GONE says that the endpoint no longer exists."""

    SLOW = "slow"
    ERROR = "error"
    TOO_MANY = "too_many"
    HANG = "hang"
    DROP_ANSWER = "drop_answer"
    GONE = "gone"


Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Misbehaviour(Struct, frozen=True, forbid_unknown_fields=True):
    """One order. `channel` None: every channel; `count` None: until told otherwise. `seconds` is how slow;
    `retry_after` comes with TOO_MANY and may be absurd, negative or missing, as providers' are."""

    fault: Fault
    channel: str | None = None
    count: Annotated[int, Meta(ge=1)] | None = None
    seconds: Seconds = 1.0
    retry_after: Annotated[float, Meta(ge=-1e9, le=1e9)] | None = None
