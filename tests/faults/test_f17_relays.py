"""F17: a mail relay that greylists, says 421 and 451 and hangs up after the dot, with the whole engine before it: no
mail is lost, and none is doubled but where the relay's answer was."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct
from smtp_cast import Drawer, smtp_settings

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome, Retry, Sent, Unknown
from noroshi.domain.states import Status
from noroshi.flow.send.email.smtp.channel import SmtpChannel
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.faults.machinery.reckoning import Reckoning, Word, render_problems
from tests.faults.machinery.report import publish, section
from tests.faults.machinery.sim_machine import SimMachine
from tests.faults.sweep.virtual import VirtualNoroshi, VirtualProvider
from tests.stand_ins.relay_in_memory import EVERY, GREYLISTED, HOST, PORT, RelayInMemory

pytestmark = pytest.mark.xdist_group("provider_faults")

MAILS = 40
FAULTS_OF_A_KIND = 2
LOOKS_EVERY = timedelta(minutes=1)
ROUNDS_EVERY = timedelta(minutes=10)
DRAINED_WITHIN = timedelta(hours=6)

Hear = Callable[[Outcome], Outcome]


def as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def silence_as_yes(outcome: Outcome) -> Outcome:
    """A bug: a connection that ends after the dot is taken for a yes."""
    return Sent("assumed") if isinstance(outcome, Unknown) else outcome


def silence_as_no(outcome: Outcome) -> Outcome:
    """A bug: a connection that ends after the dot is taken for a no, of which nobody is told."""
    return Retry(outcome.code, outcome.error) if isinstance(outcome, Unknown) else outcome


class MailProvider(VirtualProvider):
    """The product's own SMTP channel, before a relay in memory; `hear` may mistake what the channel says."""

    max_batch = SmtpChannel.max_batch

    def __init__(self, relay: RelayInMemory, hear: Hear) -> None:
        super().__init__(SmtpChannel.account, "email")
        self._relay = relay
        self._hear = hear
        self.taken = relay.taken
        self._channel: SmtpChannel | None = None

    def place_on(self, machine: SimMachine) -> None:
        self._machine = machine

    def connect(self) -> None:
        """For the life that is being lived."""
        clock = self._machine.clock
        self._relay.place_on(clock, asyncio.get_running_loop())
        self._channel = SmtpChannel(smtp_settings(f"smtp://{HOST}:{PORT}", helo="shop.example"), clock, Drawer())

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        assert self._channel is not None
        return [self._hear(outcome) for outcome in await self._channel.send(attempts)]

    async def close(self) -> None:
        assert self._channel is not None
        await self._channel.close()


class Mailed(Struct, frozen=True):
    reckoning: Reckoning
    unknown: int
    faults: Counter[str]
    statuses: Counter[Status]

    @property
    def is_sound(self) -> bool:
        words = self.reckoning.words
        return not words[Word.LOST] and not words[Word.UNEXPECTED] and self.reckoning.doubled <= self.unknown


def mail_through(kept: KeptStore, hear: Hear) -> Mailed:
    """Mails are asked for, and the relay misbehaves in every way before it takes the last of them."""
    relay = RelayInMemory(FAULTS_OF_A_KIND)
    mail = MailProvider(relay, hear)
    noroshi = VirtualNoroshi(17, kept, mail, people=MAILS, rounds_every=ROUNDS_EVERY)

    async def script(noroshi: VirtualNoroshi) -> None:
        mail.connect()
        for number, user_id in enumerate(noroshi.people):
            await noroshi.post(f"mail {number}", user_id, "email")
        for _ in range(DRAINED_WITHIN // LOOKS_EVERY):
            if not await noroshi.store.queue.unfinished():
                break
            await noroshi.clock.sleep(LOOKS_EVERY)
        await mail.close()

    noroshi.live(script)
    ended = Counter(one.status for one in kept.ended())
    return Mailed(noroshi.reckon(), noroshi.meter.counts["provider_unknown_total"], relay.faults, ended)


def test_a_relay_that_misbehaves_in_every_way_costs_no_mail(tmp_path: Path, store: Stores) -> None:  # F17, I1-I3, W11
    runs: dict[str, Mailed] = {}
    for hear in (as_it_is, silence_as_yes, silence_as_no):
        (tmp_path / hear.__name__).mkdir()
        with store.opened(tmp_path / hear.__name__) as kept:
            runs[hear.__name__] = mail_through(kept, hear)
    publish(section("F17", store.kind), _table(runs))
    found = runs["as_it_is"]
    assert found.is_sound, render_problems(found.reckoning)
    assert found.unknown == found.faults["taken, then dropped"] + found.faults["dropped, not taken"]
    assert 0 < found.reckoning.doubled <= found.faults["taken, then dropped"]
    assert all(found.faults[how] == FAULTS_OF_A_KIND for how in EVERY), found.faults
    assert found.faults[GREYLISTED] >= MAILS
    assert found.statuses == {Status.SENT: MAILS}
    assert runs["silence_as_yes"].reckoning.words[Word.LOST], "mails that nobody took went unnoticed"
    assert runs["silence_as_no"].reckoning.doubled > runs["silence_as_no"].unknown, "copies went unnoticed"


def _table(runs: dict[str, Mailed]) -> str:
    names = {"as_it_is": "the product"} | {
        hear.__name__: f"control: {hear.__name__.replace('_', ' ')}" for hear in (silence_as_yes, silence_as_no)
    }
    head = "| run | misbehaved | unknown outcomes | copies | lost | ended | verdict |"
    rows = [
        f"| {names[name]} | {sum(one.faults.values()):,} times | {one.unknown} | {one.reckoning.doubled} "
        f"| {one.reckoning.words[Word.LOST]} | {_ends(one)} | {_verdict(name, one)} |"
        for name, one in runs.items()
    ]
    return "\n".join([head, "|---|--:|--:|--:|--:|---|---|", *rows])


def _ends(run: Mailed) -> str:
    return ", ".join(f"{count} {status.name}" for status, count in sorted(run.statuses.items()))


def _verdict(name: str, run: Mailed) -> str:
    if name == "as_it_is":
        return "sound" if run.is_sound else "**NOT sound**"
    return "**control: fault NOT found**" if run.is_sound else "control: fault found"
