"""Settings, a store and a machine's parts in; the shop's desk out."""

from noroshi.flow.send.catcher.line import CaughtLine
from noroshi.flow.send.line.messaging.channel import open_line
from noroshi.machine.secrets import Secrets
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.line import Line
from noroshi.ports.outgoing import Outgoing
from noroshi.ports.signatures import Signatures
from noroshi.ports.store import StorePorts
from noroshi.reservations.links import Links
from noroshi.reservations.sender import Sender
from noroshi.reservations.shop import Shop
from noroshi.settings import Settings


def find_line(settings: Settings, outgoing: Outgoing, catching: Caught | None) -> Line | None:
    """The LINE of the settings; where there is none and messages are to be caught, the catcher; else None."""
    line = open_line(settings.values, outgoing)
    return CaughtLine(catching) if line is None and catching is not None else line


def open_shop(
    settings: Settings,
    store: StorePorts,
    line: Line | None,
    *,
    clock: Clock,
    dice: Dice,
    crash_points: CrashPoints,
    secrets: Secrets,
    signatures: Signatures | None = None,
) -> Shop:
    """Without `signatures` it takes no payments from outside."""
    return Shop(
        reservations=store.reservations,
        jobs=store.notification_jobs,
        sender=Sender(store.notification_jobs, line, clock, dice, crash_points),
        signatures=signatures,
        links=Links(secrets.pepper, settings.public_url),
        clock=clock,
        dice=dice,
        is_live=settings.stripe_livemode,
    )
