"""The catcher in LINE's place: a push of the reservations in, kept for a developer to see, and LINE's answer out."""

from uuid import UUID

from noroshi.domain.deliveries import Attempt, DeliveryKey, Recipient
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId
from noroshi.domain.lanes import Lane
from noroshi.domain.line import LineAnswer
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from noroshi.ports.caught import Caught

_LANE = Lane("line", "catcher-line", Priority.NORMAL)
_SOMEBODY = Recipient("customer", None, "ja", "Asia/Tokyo", {})


class CaughtLine:
    """Implements ports/line.py. It knows the retry keys of its own life."""

    def __init__(self, caught: Caught) -> None:
        self._caught = caught
        self._known: set[UUID] = set()

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        if retry_key in self._known:
            return LineAnswer(409, "caught before")
        key = DeliveryKey(DEFAULT_TENANT, NotificationId(retry_key.bytes), EndpointId(0))
        await self._caught.keep_caught([Attempt(key, _LANE, "reservations", _SOMEBODY, to, Content(text), 1, None)])
        self._known.add(retry_key)
        return LineAnswer(200, "caught")
