"""Store: turns and readings in, every port of the store over them out."""

from abc import ABC, abstractmethod

from noroshi.ports.announcements import Announcements
from noroshi.ports.clock import Clock
from noroshi.ports.duties import Duties
from noroshi.ports.sealer import Sealer
from noroshi.storage.accounts import StoredAccounts
from noroshi.storage.announcing import LocalAnnouncements
from noroshi.storage.attachments import StoredAttachments
from noroshi.storage.batches import StoredBatches
from noroshi.storage.dead_letters import StoredDeadLetters
from noroshi.storage.history import StoredHistory
from noroshi.storage.inbox import StoredInbox, StoredTickets
from noroshi.storage.marks import StoredMarks
from noroshi.storage.notification_jobs import StoredNotificationJobs
from noroshi.storage.people import StoredDevices, StoredPeople
from noroshi.storage.queue import StoredQueue
from noroshi.storage.records import StoredAlerts, StoredCaught, StoredKeys, StoredPauses
from noroshi.storage.requests import StoredRequests
from noroshi.storage.reservations import StoredReservations
from noroshi.storage.restored import StoredDoubts
from noroshi.storage.suppressions import StoredSuppressions
from noroshi.storage.templates import StoredTemplates
from noroshi.storage.turns import Readings, Turns


class Store(ABC):
    """Every port of a store, started once and stopped once. `is_alone`: no other process serves it. `shown` are the
    readings of what people look through, if those must not hold up the ones that accepting and sending wait for."""

    def __init__(
        self,
        turns: Turns,
        readings: Readings,
        sealer: Sealer,
        duties: Duties,
        *,
        is_alone: bool,
        shown: Readings | None = None,
    ) -> None:
        shown = shown or readings
        self.accounts = StoredAccounts(turns, readings)
        self.alerts = StoredAlerts(shown)
        self.attachments = StoredAttachments(readings)
        self.batches = StoredBatches(turns, shown)
        self.caught = StoredCaught(turns, shown)
        self.dead_letters = StoredDeadLetters(turns, shown)
        self.devices = StoredDevices(turns, readings, sealer)
        self.doubts = StoredDoubts(turns, shown)
        self.duties = duties
        self.history: StoredHistory = StoredHistory(turns, shown)
        self.inbox = StoredInbox(turns, readings, sealer)
        self.keys = StoredKeys(turns, readings)
        self.marks = StoredMarks(turns, readings)
        self.notification_jobs = StoredNotificationJobs(turns, readings, sealer)
        self.pauses = StoredPauses(turns, readings)
        self.people = StoredPeople(turns, readings, sealer)
        self.queue = StoredQueue(turns, readings, sealer, is_alone=is_alone)
        self.requests = StoredRequests(turns, readings)
        self.reservations = StoredReservations(turns, readings, sealer)
        self.suppressions = StoredSuppressions(turns, sealer)
        self.templates = StoredTemplates(turns, readings)
        self.tickets = StoredTickets(turns)

    @abstractmethod
    async def start(self) -> int:
        """Connects, and brings the schema up to date; answers its number."""

    @abstractmethod
    async def stop(self) -> None:
        """Finishes what waits, and lets go of the database."""

    def announcements(self, clock: Clock) -> Announcements:  # noqa: ARG002 - where others listen it is waited for them
        """To whoever serves this store. The clock is the process's own, also where the store keeps another."""
        return LocalAnnouncements()

    async def trouble(self) -> str | None:
        """Why nothing can be read or written at this moment; found out within a few seconds."""
        return None
