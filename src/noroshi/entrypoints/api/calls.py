"""Calls: one row of the route table, and what a route's function is given when the row is called."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from noroshi.domain.bodies import MAX_BODY
from noroshi.domain.ids import BatchId, NotificationId, RequestId, TenantId, batch_of, read
from noroshi.domain.inbox import Owner
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller

JSON = "application/json"
LARGEST_NUMBER = 2**63 - 1


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """For routes that take no query parameter: any is refused."""


class RawBody(Struct, frozen=True):
    """A body as it came, with all headers: for routes whose caller signs it. Names are in lower case."""

    raw: bytes
    headers: dict[str, str]


Q = TypeVar("Q")
B = TypeVar("B")


class Call(Struct, Generic[Q, B], frozen=True):
    """`path` holds the variable parts of the path, decoded. On open routes the caller is ANYONE."""

    caller: Caller
    path: dict[str, str]
    query: Q
    body: B
    idempotency_key: str | None = None

    @property
    def tenant(self) -> TenantId:
        return self.caller.tenant

    @property
    def user_id(self) -> str:
        return self.path["user_id"]

    @property
    def owner(self) -> Owner:
        """Whose inbox is meant."""
        return Owner(self.caller.tenant, self.path["user_id"])

    @property
    def template_id(self) -> str:
        return self.path["template_id"]

    @property
    def batch_id(self) -> BatchId:
        raw = read(self.path["batch_id"])
        if raw is None:
            raise missing("batch")
        return BatchId(raw)

    @property
    def notification_id(self) -> NotificationId:
        """One that was counted off in the batch of the path."""
        raw = read(self.path["notification_id"])
        if raw is None or batch_of(NotificationId(raw)) != self.batch_id:
            raise missing("notification")
        return NotificationId(raw)

    @property
    def request_id(self) -> RequestId:
        raw = read(self.path["request_id"])
        if raw is None:
            raise missing("request")
        return RequestId(raw)

    def number(self, name: str, what: str) -> int:
        """A numeric id of the path; what is no such number does not exist."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > LARGEST_NUMBER:
            raise missing(what)
        return int(text)


ANYONE = Caller(tenant=TenantId(0), key_id="", name="anyone", scopes=frozenset())

Run = Callable[..., Awaitable[Any]]
"""Takes the desk and the call; that of a stream also what it is to fill."""


class Row(Struct, frozen=True, kw_only=True):
    """One route. `run` returns an `answer`, bytes of type `media`, or None where `answer` is None (204).
    `scope` None means that the route is open. `problems` are the codes beyond those its shape implies; `multiline`
    names the fields of the body in whose values tabs and line breaks are allowed. Where the body is a RawBody it is
    not looked at. What `is_personal` is open to the person in the path, too. `takes_link`: who brings no key may bring
    a signed link, which `run` checks. `headers` are further lines of the answer, or stand in for those that every
    answer has."""

    method: str
    path: str
    name: str
    summary: str
    scope: KeyScope | None
    run: Run
    answer: Any
    status: int = 200
    query: type[Struct] = NoQuery
    body: type[Struct] | None = None
    problems: tuple[str, ...] = ()
    multiline: frozenset[str] = frozenset()
    takes_idempotency_key: bool = False
    takes_link: bool = False
    media: str = JSON
    is_personal: bool = False
    max_body: int = MAX_BODY
    headers: tuple[tuple[bytes, bytes], ...] = ()


def missing(what: str) -> ProblemError:
    """The same answer for an id that never was and for another tenant's."""
    return ProblemError("not_found", f"There is no such {what}.")
