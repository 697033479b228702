"""What every lane of one dispatcher works with: the ports, and what the lanes share."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from noroshi.domain.categories import Categories
from noroshi.flow.dispatch.composing import Compose
from noroshi.flow.dispatch.flights import Flights
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.dispatch.stops import Stops
from noroshi.ports.accounts import Accounts
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.meter import Meter
from noroshi.ports.queue import Queue


class Kit(Struct):
    """`stops` is replaced when the pauses change; `closing` is set once, when the dispatcher stops; `tell_change` lets
    other processes know that an account must rest or may be used again."""

    clock: Clock
    dice: Dice
    meter: Meter
    queue: Queue
    accounts: Accounts
    compose: Compose
    categories: Categories
    settings: DispatchSettings
    crash_points: CrashPoints
    settler: Settler
    flights: Flights
    closing: asyncio.Event
    tell_change: Callable[[], None]
    stops: Stops = Stops()
