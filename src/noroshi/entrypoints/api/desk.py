"""The desk: everything the API may ask for, in one object that bootstrap provides."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Protocol

from noroshi.domain.categories import Categories
from noroshi.domain.ids import BatchId
from noroshi.domain.inbox import InboxHead, Owner
from noroshi.domain.instants import Instant
from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.records import Workload
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from noroshi.entrypoints.api.shop_desk import ShopDesk
from noroshi.ports.alerts import Alerts
from noroshi.ports.attachments import Attachments
from noroshi.ports.batches import Batches
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock
from noroshi.ports.dead_letters import DeadLetters
from noroshi.ports.devices import Devices
from noroshi.ports.envelopes import Envelopes
from noroshi.ports.history import History
from noroshi.ports.inbox import Inbox
from noroshi.ports.live import LiveInboxes
from noroshi.ports.pauses import Pauses
from noroshi.ports.people import People
from noroshi.ports.renderer import Renderer
from noroshi.ports.requests import Requests
from noroshi.ports.templates import Templates


class Gatekeeper(Protocol):
    """Tells who is calling; both ways count the call against the key's own limit."""

    def caller_if_cached(self, header: str | None) -> Caller | None: ...

    async def authenticate(self, header: str | None) -> Caller:
        """Raises ProblemError `unauthorized` or `too_many_requests`."""
        ...


class PassOffice(Protocol):
    """Gives passes to people, and tells whose they are."""

    def issue_token(self, caller: Caller, user_id: str, lives: timedelta) -> tuple[str, Instant]: ...

    def issue_ticket(self, caller: Caller, user_id: str) -> tuple[str, Instant]: ...

    async def authenticate(self, token: str) -> Caller:
        """Raises ProblemError `unauthorized` or `too_many_requests`."""
        ...

    async def admit(self, ticket: str) -> Caller:
        """Uses the ticket up. Raises ProblemError `unauthorized`."""
        ...


class Desk(Protocol):
    @property
    def gate(self) -> Gatekeeper: ...
    @property
    def alerts(self) -> Alerts: ...
    @property
    def passes(self) -> PassOffice: ...
    @property
    def live(self) -> LiveInboxes: ...
    @property
    def is_dev(self) -> bool: ...
    @property
    def origins(self) -> AbstractSet[str]:
        """The sites whose pages may call for a person."""
        ...

    @property
    def attachments(self) -> Attachments: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def people(self) -> People: ...
    @property
    def devices(self) -> Devices: ...
    @property
    def templates(self) -> Templates: ...
    @property
    def history(self) -> History: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def pauses(self) -> Pauses: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def caught(self) -> Caught: ...
    @property
    def shop(self) -> ShopDesk: ...
    @property
    def envelopes(self) -> Envelopes: ...
    @property
    def renderer(self) -> Renderer: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def categories(self) -> Categories: ...

    @property
    def dispatchable_channels(self) -> frozenset[str]:
        """Channels that some account serves."""
        ...

    @property
    def reporting_channels(self) -> frozenset[str]:
        """Channels whose providers report delivery: there SENT is not yet delivered."""
        ...

    async def accept(
        self, caller: Caller, request: NotificationRequest, idempotency_key_header: str | None
    ) -> AcceptedAnswer:
        """Answers after the commit. Raises ProblemError for everything that the request's shape cannot show."""
        ...

    async def cancel(self, caller: Caller, batch_id: BatchId) -> int | None:
        """How many notifications were withdrawn; None: no such batch."""
        ...

    async def hear(self, account: str, headers: Mapping[str, str], raw: bytes) -> None:
        """A provider's webhook, as it came. Raises ProblemError."""
        ...

    async def heed_pauses(self) -> None:
        """Dispatch looks at the pauses again, and in this process has done so when this returns: what is accepted after
        a pause was answered must not be sent."""
        ...

    def pauses_changed(self) -> None:
        """Dispatch looks at the pauses again."""
        ...

    def announce_replayed(self) -> None:
        """Dispatch looks for deliveries that a replay made ready."""
        ...

    def announce_enqueued(self) -> None:
        """The intake looks for requests that wait."""
        ...

    def inbox_changed(self, owner: Owner, head: InboxHead) -> None:
        """Whoever looks at this inbox, in any process, is told how it stands now."""
        ...

    def misbehave(self, how: Misbehaviour | None) -> bool:
        """Tells the catcher how to fail (None: no longer). False: there is no catcher, or this is not development."""
        ...

    def metrics_text(self) -> bytes: ...

    async def workload(self) -> Workload: ...

    async def readiness(self) -> list[str]:
        """What keeps this server from doing its work; empty: it is ready."""
        ...

    def notes(self) -> list[str]:
        """What an operator should know although the server is ready, such as the catcher standing in."""
        ...
