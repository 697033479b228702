"""What leaves this machine over HTTP, and what comes of it: an answer, nothing sent, or nobody knows."""

from datetime import timedelta

from msgspec import Struct, field


class OutgoingCall(Struct, frozen=True):
    """One HTTP request of ours. `is_foreign`: a user gave the address, so only public ones are dialled. `timeout` is
    for all of it; of the answer no more than `largest_answer` bytes are read."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: timedelta = timedelta(seconds=10)
    largest_answer: int = 65_536
    is_foreign: bool = False

    def __repr__(self) -> str:
        """Address, headers and body may hold a token."""
        return f"OutgoingCall({self.method})"


class Answered(Struct, frozen=True):
    """Names of headers are in lower case. Not whole: the body was too large, and this is its beginning."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = True


class NotSent(Struct, frozen=True):
    """Nothing of the call has left: it may be made again."""

    code: str
    error: str = ""


class NoAnswer(Struct, frozen=True):
    """The call has left, or may have: whoever it was for may have acted on it."""

    code: str
    error: str = ""


class NotAllowed(Struct, frozen=True):
    """The address is none that a user may make us dial."""

    error: str


OutgoingReply = Answered | NotSent | NoAnswer | NotAllowed
