"""What a channel says of one attempt. A channel tries once and returns one of these; only dispatch retries."""

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from noroshi.domain.inbox import Draft


class Scope(StrEnum):
    """What an answer speaks of. RECIPIENT: the provider works, and it is the recipient's mailbox that makes us wait."""

    RECIPIENT = "recipient"
    MESSAGE = "message"
    ACCOUNT = "account"


class Sent(Struct, frozen=True, tag=True):
    """The provider took the message."""

    message_id: str


class Kept(Struct, frozen=True, tag=True):
    """The message is for an inbox of ours: the commit that settles the delivery keeps it there, which delivers it."""

    draft: Draft


class Retry(Struct, frozen=True, tag=True):
    """Not now. With account scope nothing of the account is sent meanwhile and no try is used up."""

    code: str
    error: str = ""
    after: timedelta | None = None
    scope: Scope = Scope.MESSAGE


class Gone(Struct, frozen=True, tag=True):
    """The endpoint no longer exists: it is deactivated and this delivery is dead-lettered."""

    code: str
    error: str = ""


class Rejected(Struct, frozen=True, tag=True):
    """The provider will never take this message."""

    code: str
    error: str = ""


class Misconfigured(Struct, frozen=True, tag=True):
    """Our credentials or settings are wrong: the account is paused, no try is used up."""

    code: str
    error: str = ""


class Unknown(Struct, frozen=True, tag=True):
    """The request left and no answer came: the category's `on_unknown` decides."""

    code: str = "TIMEOUT"
    error: str = ""


Outcome = Sent | Kept | Retry | Gone | Rejected | Misconfigured | Unknown
