"""A store: every port that keeps something, started once and stopped once."""

from typing import Protocol

from noroshi.ports.accounts import Accounts
from noroshi.ports.batches import Batches
from noroshi.ports.caught import Caught
from noroshi.ports.dead_letters import DeadLetters
from noroshi.ports.devices import Devices
from noroshi.ports.history import History
from noroshi.ports.keys import Keys
from noroshi.ports.pauses import Pauses
from noroshi.ports.people import People
from noroshi.ports.queue import Queue
from noroshi.ports.templates import Templates


class StorePorts(Protocol):
    """All of a store, wherever it lives."""

    @property
    def accounts(self) -> Accounts: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def caught(self) -> Caught: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def devices(self) -> Devices: ...
    @property
    def history(self) -> History: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def pauses(self) -> Pauses: ...
    @property
    def people(self) -> People: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def templates(self) -> Templates: ...

    async def start(self) -> int:
        """Answers the number of the schema."""
        ...

    async def stop(self) -> None: ...
