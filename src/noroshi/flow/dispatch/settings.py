"""Settings of dispatch: how many workers each lane has, and how often dispatch looks around."""

from collections.abc import Container, Mapping
from datetime import timedelta

from msgspec import Struct, field

from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority

WORKERS_SETTING = "NOROSHI_WORKERS"
WORKERS_HELP = "Workers per channel and priority, over the defaults: `push.critical=8,email.normal=4`."

MOST_WORKERS = 64

_DEFAULTS: dict[str, int] = {
    "push.critical": 4,
    "push.high": 4,
    "push.normal": 2,
    "email.normal": 3,
    "sms.normal": 1,
}
_OTHERS: dict[Priority, int] = {Priority.CRITICAL: 2, Priority.HIGH: 2, Priority.NORMAL: 2, Priority.LOW: 1}


class SettingError(ValueError):
    """A setting that cannot be read; the text says which and what to write instead."""


class DispatchSettings(Struct, frozen=True):
    """`workers` by `channel.priority`; a lease lasts the attempt's time-out and `lease_margin` more. `channels` and
    `priorities` are those this process serves; None: all."""

    workers: dict[str, int] = field(default_factory=dict)
    lease_margin: timedelta = timedelta(seconds=30)
    look_every: timedelta = timedelta(seconds=1)
    pauses_every: timedelta = timedelta(seconds=2)
    low_waits: timedelta = timedelta(seconds=1)
    compose_timeout: timedelta = timedelta(seconds=60)
    channels: frozenset[str] | None = None
    priorities: frozenset[Priority] | None = None

    def serves(self, lane: Lane) -> bool:
        return _has(self.channels, lane.channel) and _has(self.priorities, lane.priority)

    def workers_of(self, lane: Lane) -> int:
        name = f"{lane.channel}.{lane.priority}"
        return self.workers.get(name) or _DEFAULTS.get(name) or _OTHERS[lane.priority]


def _has(named: Container[str] | None, name: str) -> bool:
    return named is None or name in named


def read_settings(values: Mapping[str, str]) -> DispatchSettings:
    return DispatchSettings(workers=read_workers(values.get(WORKERS_SETTING, "")))


def read_workers(text: str) -> dict[str, int]:
    """`push.critical=8,email.normal=4` as a table; an error names the part that is wrong."""
    workers: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, count = part.partition("=")
        channel, _, priority = name.strip().partition(".")
        if not channel or priority not in list(Priority) or not count.strip().isdecimal():
            raise SettingError(f"{WORKERS_SETTING}: `{part}` is not of the form channel.priority=count")
        if not 1 <= int(count) <= MOST_WORKERS:
            raise SettingError(f"{WORKERS_SETTING}: `{part}` asks for less than 1 or more than {MOST_WORKERS} workers")
        workers[f"{channel}.{priority}"] = int(count)
    return workers
