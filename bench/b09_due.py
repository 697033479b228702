"""B9: scheduled sends that fall due, sent a second, with a million future rows in the store against a thousand.

The future rows are of all three kinds that wait for a time: scheduled batches of one person (70 %), held
notifications (15 %), deliveries that wait for a retry in the lane that is drained (15 %).
"""

import time
from datetime import UTC, datetime

import apsw
import msgspec

from bench.cast import USERS, reachable_users, user_id
from bench.counts import check_counts
from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.population import Population, put_batch
from bench.run import Run
from bench.server import BenchError, noroshi_on
from noroshi.domain.ids import BatchId, new_batch_id, notification_id
from noroshi.domain.instants import Instant, at
from noroshi.storage.sqlite.sql import SQL

MANY, FEW = 1_000_000, 1_000
GOAL = Goal(bar=0.85, aim=1.0)

_HEAD_START = 8.0
_DAY = 24 * 3600 * 1_000_000
_PER_BATCH = 1_000


def run(bench: Run) -> list[Row]:
    due = int(bench.pick(10_000, 40_000))
    with bench.copy_of() as many, bench.copy_of() as few:
        crowded, sparse = _with_future_rows(many, MANY), _with_future_rows(few, FEW)
        pairs = [Pair(_send_due(bench, crowded, due), _send_due(bench, sparse, due)) for _ in range(bench.pairs)]
    what = f"B9 due sends, {MANY:,} future rows ÷ {FEW:,}"
    return [ratio_row(what, f"P1 and the future rows, {due:,} due at once", "sends", pairs, GOAL)]


def _send_due(bench: Run, population: Population, due: int) -> Measured:
    with bench.copy_of(population) as copied:
        due_at = Instant(at(datetime.now(UTC)) + int(_HEAD_START * 1_000_000))
        _schedule(copied, [user_id(number) for number in reachable_users(due)], due_at)
        with noroshi_on(copied) as server:
            wait = due_at / 1_000_000 - time.time()
            if wait < 0:
                raise BenchError("the server took too long to start: the sends were due before it was ready")
            time.sleep(wait)
            used, began = server.cpu(), time.perf_counter()
            server.wait_until_quiet()
            seconds = time.perf_counter() - began
            ours = measured(due, seconds, usage=server.cpu().since(used), memory=server.memory())
            check_counts(server, is_drained=True, more_recipients=due)
    return ours


def _schedule(population: Population, user_ids: list[str], due_at: Instant) -> None:
    connection = population.open()
    connection.execute("BEGIN IMMEDIATE")
    for number, one in enumerate(user_ids):
        batch_id = new_batch_id(due_at // 1000, number << 6)
        put_batch(connection, batch_id, [one], due_at, 10_000_000 + number, is_open=True)
    connection.execute("COMMIT")
    connection.close()


def _with_future_rows(population: Population, count: int) -> Population:
    """The same population with `count` rows that fall due a day from now or later; they belong to its history."""
    connection = population.open(synchronous="OFF")
    connection.execute("BEGIN")
    tomorrow = Instant(at(datetime.now(UTC)) + _DAY)
    waiting = count * 15 // 100
    last = population.last_batch
    stamp = int.from_bytes(last[:6], "big") + 1
    for first in range(0, 2 * waiting, _PER_BATCH):
        last = new_batch_id(stamp, first)
        size = min(_PER_BATCH, 2 * waiting - first)
        _put_waiting(connection, last, first, size, tomorrow, is_held=first < waiting)
        stamp += 1
    for number in range(count - 2 * waiting):
        last = new_batch_id(stamp + number // 100, (number % 100) << 40)
        put_batch(connection, last, [user_id(number % USERS)], Instant(tomorrow + number), number, is_open=True)
    connection.execute("COMMIT")
    connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()
    return msgspec.structs.replace(population, last_batch=last)


def _put_waiting(
    connection: apsw.Connection, batch_id: BatchId, first: int, size: int, due_at: Instant, *, is_held: bool
) -> None:
    people = [user_id((first + place) % USERS) for place in range(size)]
    ids = [notification_id(batch_id, place, 0) for place in range(size)]
    put_batch(connection, batch_id, people, Instant(due_at - _DAY), first, is_open=False)
    connection.executemany(
        "INSERT INTO notifications (tenant, notification_id, user_id, channel, status, at, content_hash, standing,"
        " template_row) VALUES (1, ?, ?, 'email', ?, ?, ?, 1, 1)",
        [(this, person, 20 if is_held else 50, due_at - _DAY, first) for this, person in zip(ids, people, strict=True)],
    )
    if is_held:
        connection.executemany(
            SQL["put_hold"], [(1, this, due_at + place, "quiet_hours") for place, this in enumerate(ids)]
        )
        return
    connection.executemany(
        "INSERT INTO deliveries (tenant, notification_id, endpoint_id, lane, due_at, user_id, category, template_row,"
        " wanted_at, tries) VALUES (1, ?, 1, 'email.noop.normal', ?, ?, 'general', 1, ?, 1)",
        [
            (this, due_at + place, person, due_at - _DAY)
            for place, (this, person) in enumerate(zip(ids, people, strict=True))
        ],
    )
