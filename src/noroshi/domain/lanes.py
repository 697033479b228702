"""A lane: the queue of one channel, one provider account and one priority."""

from typing import NamedTuple

from noroshi.domain.priorities import Priority


class Lane(NamedTuple):
    channel: str
    account: str
    priority: Priority

    @property
    def name(self) -> str:
        return f"{self.channel}.{self.account}.{self.priority}"

    @property
    def topic(self) -> str:
        """The queue name people know (N5.2)."""
        return f"notifications.{self.channel}.{self.priority}"


def read_lane(name: str) -> Lane:
    """The lane of a stored name."""
    channel, account, priority = name.split(".")
    return Lane(channel, account, Priority(priority))
