"""A store: every port that keeps something, started once and stopped once."""

from typing import Protocol

from noroshi.ports.accounts import Accounts
from noroshi.ports.alerts import Alerts
from noroshi.ports.announcements import Announcements
from noroshi.ports.attachments import Attachments
from noroshi.ports.batches import Batches
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock
from noroshi.ports.dead_letters import DeadLetters
from noroshi.ports.devices import Devices
from noroshi.ports.doubts import RestoredDoubts
from noroshi.ports.duties import Duties
from noroshi.ports.history import History
from noroshi.ports.inbox import Inbox
from noroshi.ports.keys import Keys
from noroshi.ports.marks import Marks
from noroshi.ports.notification_jobs import NotificationJobs
from noroshi.ports.pauses import Pauses
from noroshi.ports.people import People
from noroshi.ports.queue import Queue
from noroshi.ports.requests import Requests
from noroshi.ports.reservations import Reservations
from noroshi.ports.suppressions import Suppressions
from noroshi.ports.templates import Templates
from noroshi.ports.tickets import Tickets


class StorePorts(Protocol):
    """All of a store, wherever it lives."""

    @property
    def accounts(self) -> Accounts: ...
    @property
    def alerts(self) -> Alerts: ...
    @property
    def attachments(self) -> Attachments: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def caught(self) -> Caught: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def devices(self) -> Devices: ...
    @property
    def doubts(self) -> RestoredDoubts: ...
    @property
    def duties(self) -> Duties: ...
    @property
    def history(self) -> History: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def marks(self) -> Marks: ...
    @property
    def notification_jobs(self) -> NotificationJobs: ...
    @property
    def pauses(self) -> Pauses: ...
    @property
    def people(self) -> People: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def reservations(self) -> Reservations: ...
    @property
    def suppressions(self) -> Suppressions: ...
    @property
    def templates(self) -> Templates: ...
    @property
    def tickets(self) -> Tickets: ...

    async def start(self) -> int:
        """Answers the number of the schema."""
        ...

    async def stop(self) -> None: ...

    def announcements(self, clock: Clock) -> Announcements:
        """To whoever serves this store. The clock is the process's own, also where the store keeps another."""
        ...

    async def trouble(self) -> str | None:
        """Why nothing can be read or written at this moment; found out within a few seconds."""
        ...
