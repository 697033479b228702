"""Settings in, what a Noroshi runs on out: clock, dice, meter, secrets, renderer, the way out over HTTP."""

from typing import Protocol

from msgspec import Struct, field

from noroshi.bootstrap.crashing import crash_points
from noroshi.machine.ballast import Ballast
from noroshi.machine.dice import SystemDice
from noroshi.machine.outgoing.opening import ClosableOutgoing, LateOutgoing
from noroshi.machine.prometheus import PrometheusMeter
from noroshi.machine.rendering.renderer import ChildRenderer
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import Secrets, load_secrets
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.renderer import Renderer
from noroshi.settings import Settings


class LiveRenderer(Renderer, Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Machine(Struct, frozen=True):
    """What a Noroshi runs on: the system's own parts in service, others (and no ballast) in virtual time."""

    clock: Clock
    dice: Dice
    meter: PrometheusMeter
    crash_points: CrashPoints
    renderer: LiveRenderer
    secrets: Secrets
    ballast: Ballast | None = None
    outgoing: ClosableOutgoing = field(default_factory=LateOutgoing)

    @property
    def sealer(self) -> AesSealer:
        return AesSealer(self.secrets.masters, self.secrets.blind_index)


def machine_of(settings: Settings, clock: Clock, ballast: Ballast | None) -> Machine:
    return Machine(
        clock=clock,
        dice=SystemDice(),
        meter=PrometheusMeter(),
        crash_points=crash_points(settings),
        renderer=ChildRenderer(),
        secrets=load_secrets(settings.data, settings.secret_key),
        ballast=ballast,
        outgoing=LateOutgoing(settings.http_ca),
    )
