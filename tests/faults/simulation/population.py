"""The people and templates of every world: made once, by the product's own store, then copied for each seed."""

import random
from functools import cache
from itertools import count

import apsw
from msgspec import Struct

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.people import FrequencyLimit, Preferences, QuietHours, User
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.machine.sealing import AesSealer
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import SqliteStore, open_inline_store
from tests.faults.machinery.sim_loop import SimLoop
from tests.faults.machinery.sim_ports import SimClock

CHANNELS = ("email", "sms", "push")
SEALER = AesSealer({1: b"m" * 32}, b"i" * 32)

NOTE = "note"
MAIL_ONLY = "mail_only"
BROKEN = "broken"
"""A template that never renders: it wants a variable that nobody gives."""

_PLENTY = {channel: FrequencyLimit(1_000, 1_000) for channel in CHANNELS}
_SCARCE = {channel: FrequencyLimit(1, 4) for channel in CHANNELS}

_WATCH_TRANSITIONS = """
CREATE TABLE sim_transitions (notification_id BLOB, before INTEGER, after INTEGER);
CREATE TRIGGER sim_watch AFTER UPDATE OF status ON notifications WHEN old.status <> new.status BEGIN
    INSERT INTO sim_transitions VALUES (new.notification_id, old.status, new.status);
END;
"""
"""Every change of a status is noted in the commit that makes it, for I6."""


class Somebody(Struct, frozen=True):
    """`reach`: how many devices, and whether e-mail and phone are known."""

    user_id: str
    preferences: Preferences = Preferences(frequency_limit=_PLENTY)
    devices: int = 1
    has_addresses: bool = True

    @property
    def name(self) -> str:
        return self.user_id.upper()


PLAIN = tuple(Somebody(f"plain{n}", devices=2 if n % 4 == 0 else 1) for n in range(16))
LIMITED = tuple(Somebody(f"limited{n}", Preferences()) for n in range(2))
SCARCE = (Somebody("scarce", Preferences(frequency_limit=_SCARCE)),)
QUIET = (
    Somebody("quiet_now", Preferences(frequency_limit=_PLENTY, quiet_hours=QuietHours(True, "08:30", "09:30", "UTC"))),
    Somebody("quiet_soon", Preferences(frequency_limit=_PLENTY, quiet_hours=QuietHours(True, "09:01", "09:04", "UTC"))),
)
PICKY = (Somebody("picky", Preferences(channels={"email": False}, frequency_limit=_PLENTY)),)
BARE = (Somebody("bare", devices=0, has_addresses=False),)
STRANGERS = ("stranger0", "stranger1")
"""Named by callers, registered by nobody."""

PEOPLE = {one.user_id: one for one in (*PLAIN, *LIMITED, *SCARCE, *QUIET, *PICKY, *BARE)}

_numbers = count()


def expected_body(text: str, user_id: str) -> str:
    """What the provider must get for this person, by the template NOTE or MAIL_ONLY."""
    return f"{text} {PEOPLE[user_id].name}"


def new_database() -> tuple[str, apsw.Connection]:
    """A fresh copy in memory: where it is, and the connection that keeps it alive and inspects it."""
    where = f"file:/sim-{next(_numbers)}?vfs=memdb"
    keeper = open_connection(where, cache_kib=2048)
    keeper.set_busy_timeout(0)
    with keeper.backup("main", _original(), "main") as copying:
        copying.step()
    return where, keeper


@cache
def _original() -> apsw.Connection:
    connection = open_connection(":memory:")
    loop = SimLoop(random.Random(0))
    store = open_inline_store(
        connection, sealer=SEALER, clock=SimClock(loop), meter=NullMeter(), crash_points=NoCrashPoints()
    )
    loop.run_until_complete(_populate(store))
    connection.execute(_WATCH_TRANSITIONS)
    return connection


async def _populate(store: SqliteStore) -> None:
    for place, one in enumerate(PEOPLE.values()):
        email, phone = (f"{one.user_id}@example.org", f"+8190{place:08}") if one.has_addresses else (None, None)
        await store.people.put_user(DEFAULT_TENANT, User(one.user_id, email, phone, one.name, "en", "UTC"))
        await store.people.put_preferences(DEFAULT_TENANT, one.user_id, one.preferences, None, None)
        for number in range(one.devices):
            await store.devices.register(DEFAULT_TENANT, one.user_id, "ios", f"token-{one.user_id}-{number}", None)
    for template_id, body, channels in (
        (NOTE, "{{ text }} {{ user.name }}", CHANNELS),
        (MAIL_ONLY, "{{ text }} {{ user.name }}", ("email",)),
        (BROKEN, "{{ text }} {{ absent }}", CHANNELS),
    ):
        for channel in channels:
            await store.templates.add(
                DEFAULT_TENANT,
                template_id,
                channel=channel,
                locale="en",
                variant="",
                subject=None,
                title=None,
                body=body,
                metadata={},
                created_by="simulation",
            )
