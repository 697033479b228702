"""L4: the power fails at random moments under the real store; whatever it had acknowledged is there afterwards."""

import asyncio
import contextlib
import os
import random
import threading
from pathlib import Path

import apsw
import pytest
from msgspec import Struct

from tests.faults.machinery.power_cut import ForgetfulDisk
from tests.faults.machinery.report import publish
from tests.faults.machinery.witness import HALVES, Witness, WitnessedStore, halves

CUTS = 5_000 if os.environ.get("NOROSHI_TEST_FULL") == "1" else 200
CUTS_A_FILE = 20
CONTROL_CUTS = 5
LONGEST_LIFE = 0.06

pytestmark = pytest.mark.xdist_group("l4")


class Tally(Struct):
    """One row of the report."""

    cuts: int = 0
    calls: int = 0
    batches: int = 0
    settled: int = 0
    in_doubt: int = 0
    lost: int = 0
    halves: int = 0

    def row(self, name: str) -> str:
        cells = (name, self.cuts, self.calls, self.batches, self.settled, self.in_doubt, self.lost, self.halves)
        return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + " |"


HEAD = (
    "| synchronous | cuts | calls answered | batches acknowledged | deliveries settled | cut between a claim and its "
    "settlement | lost | kept in part |\n|---|---:|---:|---:|---:|---:|---:|---:|"
)


async def live_until_the_cut(
    disk: ForgetfulDisk,
    path: Path,
    witness: Witness,
    chance: random.Random,
    synchronous: str = "FULL",
    *,
    is_apart: bool = True,
) -> None:
    """One life: it recovers, works, and loses its power at a moment that has nothing to do with what it does."""
    life = WitnessedStore(path, witness, chance, vfs=disk.name, synchronous=synchronous, is_apart=is_apart)
    await life.rescue()
    cut = threading.Timer(chance.uniform(0.001, LONGEST_LIFE), disk.cut)
    cut.start()
    await life.run()
    await asyncio.wait_for(life.is_broken.wait(), 10)
    cut.join()
    with contextlib.suppress(apsw.Error):
        await life.store.stop()


async def begin(disk: ForgetfulDisk, path: Path, chance: random.Random, synchronous: str = "FULL") -> Witness:
    life = WitnessedStore(path, Witness(), chance, vfs=disk.name, synchronous=synchronous)
    await life.people()
    await life.store.stop()
    return life.witness


def look(disk: ForgetfulDisk, path: Path, witness: Witness) -> tuple[list[str], list[str]]:
    """What is lost, and what was kept in part; the file itself must be whole."""
    connection = apsw.Connection(str(path), vfs=disk.name)
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return list(witness.lost(connection)), halves(connection)
    finally:
        connection.close()


async def cut_often(folder: Path, cuts: int, seed: str, **how: str) -> tuple[Tally, list[str]]:
    """The sums of `cuts` power cuts, and every complaint. Every other time the unsynced blocks survive by chance; every
    other pair of lives has its writer in a thread, as in a library, instead of on the loop, as in a server."""
    chance = random.Random(seed)
    tally, complaints = Tally(), []
    for first in range(0, cuts, CUTS_A_FILE):
        path = folder / f"{how.get('synchronous', 'FULL')}-{first}.db"
        with ForgetfulDisk() as disk:
            witness = await begin(disk, path, chance, **how)
            for number in range(first, min(first + CUTS_A_FILE, cuts)):
                await live_until_the_cut(disk, path, witness, chance, **how, is_apart=number % 4 < 2)
                disk.restore(chance if number % 2 else None)
                lost, kept_in_part = look(disk, path, witness)
                tally.cuts += 1
                tally.in_doubt += any(seen.is_doubtful for seen in witness.deliveries.values())
                tally.lost += len(lost)
                tally.halves += len(kept_in_part)
                complaints += [f"cut {number}: {what}" for what in (*lost, *kept_in_part)]
                if lost:
                    break  # what is lost once is missing for ever: this file has nothing more to say
            tally.calls += witness.calls
            tally.batches += len(witness.batches)
            tally.settled += sum(seen.end is not None for seen in witness.deliveries.values())
    return tally, complaints


PLANTED = {
    "a batch whose recipients do not add up": "DELETE FROM rejections",
    "a batch without a body": "DELETE FROM batch_bodies",
    "a body without a batch": "DELETE FROM batches",
    "an idempotency key without a batch": "DELETE FROM batches",
    "a batch without its idempotency key": "DELETE FROM idempotency_keys",
    "an unfinished notification without a delivery": "DELETE FROM deliveries",
    "a delivery without an unfinished notification": "UPDATE notifications SET status = 60",
    "an end without a record": "DELETE FROM ledger",
    "a dead letter without its notification, or the other way round": "DELETE FROM dead_letters",
    "a sent message without its id": "DELETE FROM message_ids",
}


async def test_control_every_kind_of_half_commit_is_noticed(tmp_path: Path) -> None:
    life = WitnessedStore(tmp_path / "whole.db", Witness(), random.Random("halves"))
    await life.people()
    for _ in range(30):
        await life.accept()
        await life.send()
    for _ in range(5):
        await life.accept()
    await life.store.stop()
    connection = apsw.Connection(str(tmp_path / "whole.db"))
    assert halves(connection) == []
    assert PLANTED.keys() == HALVES.keys()
    for name, damage in PLANTED.items():
        connection.execute("BEGIN")
        connection.execute(damage)
        assert any(name in found for found in halves(connection)), name
        connection.execute("ROLLBACK")
    connection.close()


async def test_no_acknowledged_call_is_lost_to_a_power_cut(tmp_path: Path) -> None:
    # L4, F2, W3, I1, I13
    tally, complaints = await cut_often(tmp_path, CUTS, "power")
    control, control_complaints = await cut_often(tmp_path, CONTROL_CUTS, "control", synchronous="NORMAL")
    publish("L4", "\n".join([HEAD, tally.row("FULL"), control.row("NORMAL (control: must lose)")]))
    assert complaints == []
    assert tally.cuts == CUTS
    assert tally.batches > 2 * CUTS, "the store did too little to lose anything"
    assert tally.in_doubt > CUTS // 8, "too few cuts landed between a claim and its settlement"
    assert control.lost > 0, "the control lost nothing: this test could not have seen a loss"
    assert control_complaints
