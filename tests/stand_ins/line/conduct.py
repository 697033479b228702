"""How the stand-in behaves, and what it writes down: shared by its process and by the tests that hold it."""

from typing import Any

from msgspec import Struct

from noroshi.domain.instants import Instant

TOO_FAST = "The API rate limit has been exceeded. Try again later."
USED_UP = "You have reached your monthly limit."

PUSH = "/v2/bot/message/push"
QUOTA = "/v2/bot/message/quota"
CONSUMPTION = "/v2/bot/message/quota/consumption"
BEHAVE = "/stand-in/conduct"
ALONE = "/stand-in/alone"


class Conduct(Struct, frozen=True):
    """Until it is told otherwise, or for the next `requests` pushes once `after` more have gone well; only towards
    `users`, if any are named.

    `status` other than 200 is answered with `message` and `details` instead of what would have been; `is_taking`: the
    message is taken all the same, as LINE may have when it answers 500, or when it hangs or drops the connection.
    `monthly` is how many messages the plan allows. `ahead` seconds is how far its clock has gone on."""

    status: int = 200
    message: str = ""
    details: tuple[dict[str, str], ...] = ()
    delay: float = 0.0
    is_hanging: bool = False
    is_dropping: bool = False
    is_taking: bool = False
    requests: int | None = None
    after: int = 0
    users: frozenset[str] | None = None
    monthly: int | None = None
    ahead: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.status == 200 and not self.is_hanging and not self.is_dropping

    def concerns(self, to: Any) -> bool:
        return self.users is None or to in self.users


GOOD = Conduct()
RATE_LIMITED = Conduct(status=429, message=TOO_FAST)
MONTHLY_LIMIT = Conduct(status=429, message=USED_UP)
FAILING = Conduct(status=500, message="An error occurred on our side")
HANGING = Conduct(is_hanging=True)
DROPPING = Conduct(is_dropping=True, is_taking=True)
"""The message is taken and its answer lost."""
REFUSING = Conduct(
    status=400,
    message="The request body has 1 error(s)",
    details=({"message": "May not be empty", "property": "messages[0].text"},),
)
UNKNOWN_USER = Conduct(
    status=400, message="The request body has 1 error(s)", details=({"message": "invalid", "property": "to"},)
)
UNAUTHORISED = Conduct(status=401, message="Authentication failed. Confirm that the access token is valid.")
FORBIDDEN = Conduct(status=403, message="Access to this API is not available for your account")


class Pushed(Struct, frozen=True):
    """A message that LINE took and answers for."""

    at: Instant
    retry_key: str | None
    request_id: str
    message_id: str
    to: str
    texts: tuple[str, ...]


class Asked(Struct, frozen=True):
    """A push that reached LINE. `status` None: it got no answer."""

    at: Instant
    retry_key: str | None
    to: str
    status: int | None
