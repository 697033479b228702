"""Settings, a machine and a store in; who may enter, and who looks at inboxes live, out."""

from urllib.parse import urlsplit

from msgspec import Struct

from noroshi.bootstrap.machine import Machine
from noroshi.flow.accept.gate import Gate
from noroshi.flow.accept.passes import Passes
from noroshi.flow.send.in_app.inbox.live import LiveStreams
from noroshi.flow.send.in_app.inbox.settings import read_inbox_settings
from noroshi.ports.store import StorePorts
from noroshi.settings import Settings


class Inboxes(Struct, frozen=True):
    """`origins` are the sites whose pages may show inboxes."""

    gate: Gate
    passes: Passes
    live: LiveStreams
    origins: frozenset[str]
    most_streams: int


def open_inboxes(settings: Settings, machine: Machine, store: StorePorts) -> Inboxes:
    of_inbox = read_inbox_settings(settings.values)
    gate = Gate(store.keys, machine.secrets.pepper, machine.clock)

    async def is_live(key_id: str) -> bool:
        return await gate.live_key(key_id) is not None

    public = urlsplit(settings.public_url)
    return Inboxes(
        gate=gate,
        passes=Passes(gate, machine.secrets.pepper, store.tickets, machine.clock, machine.dice),
        live=LiveStreams(store.inbox, machine.clock, machine.meter, is_live, most=of_inbox.most_streams),
        origins=of_inbox.origins | {f"{public.scheme}://{public.netloc}".lower()},
        most_streams=of_inbox.most_streams,
    )
