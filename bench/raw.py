"""The store without the product: what a run wrote in; the seconds that writing it takes without any decision out.

The same statements, columns, indexes and pragmas, on the same filled database, with as many commits.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from bench.population import Population
from noroshi.domain.ids import last_id_of
from noroshi.storage.sqlite.sql import SQL

CHECKPOINT_PAGES = 4_000
"""As the store's own writer has it."""

BATCH = 100

Rows = list[tuple[Any, ...]]


class Written(NamedTuple):
    """Everything that accepting and addressing wrote, in the order of the ids."""

    batches: Rows
    bodies: Rows
    notifications: Rows
    deliveries: Rows
    ledger: Rows
    rejections: Rows


def read_written(population: Population) -> Written:
    """What stands in the store after its history, in the columns of the store's own statements."""
    reader = population.open(is_reader=True)
    last = last_id_of(population.last_batch)

    def rows(columns: str, table: str, key: str) -> Rows:
        question = f"SELECT {columns} FROM {table} WHERE tenant = 1 AND {key} > ? ORDER BY {key}"  # noqa: S608
        return reader.execute(question, (last,)).fetchall()

    try:
        return Written(
            rows(_columns("insert_batch"), "batches", "batch_id"),
            rows(_columns("insert_batch_body"), "batch_bodies", "batch_id"),
            rows(_columns("put_notification"), "notifications", "notification_id"),
            rows(_columns("put_delivery"), "deliveries", "notification_id"),
            rows(_columns("put_ledger"), "ledger", "notification_id"),
            rows(_columns("insert_rejections"), "rejections", "batch_id"),
        )
    finally:
        reader.close()


def insert_all(population: Population, written: Written, commits: int) -> tuple[float, float]:
    """(seconds, CPU-seconds) for writing it all in `commits` commits."""
    connection = _open(population)
    slices = max(commits, 1)
    began, used = time.perf_counter(), time.process_time()
    for number in range(slices):
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in (
            ("put_notification", written.notifications),
            ("put_delivery", written.deliveries),
            ("put_ledger", written.ledger),
            ("insert_rejections", written.rejections),
            ("insert_batch", written.batches),
            ("insert_batch_body", written.bodies),
        ):
            part = rows[len(rows) * number // slices : len(rows) * (number + 1) // slices]
            if part:
                connection.executemany(SQL[statement], part)
        connection.execute("COMMIT")
    spent = time.perf_counter() - began, time.process_time() - used
    connection.close()
    return spent


def claim_and_finish_all(population: Population, lane: str) -> tuple[int, float, float]:
    """(deliveries, seconds, CPU-seconds): a hundred are claimed in the commit that finishes the hundred before."""
    connection = _open(population)
    finished = 0
    fence = time.time_ns() // 1000
    held: Rows = []
    began, used = time.perf_counter(), time.process_time()
    while True:
        now = time.time_ns() // 1000
        connection.execute("BEGIN IMMEDIATE")
        _finish(connection, held, fence, now)
        finished += len(held)
        fence += BATCH
        held = connection.execute(SQL["ready_deliveries"], (lane, now, BATCH + 1)).fetchall()[:BATCH]
        connection.executemany(
            SQL["claim_delivery"], [(now + 40_000_000, fence + n, *row[:3]) for n, row in enumerate(held)]
        )
        connection.execute("COMMIT")
        if not held:
            break
    spent = time.perf_counter() - began, time.process_time() - used
    connection.close()
    return finished, *spent


def _finish(connection: apsw.Connection, held: Sequence[tuple[Any, ...]], fence: int, now: int) -> None:
    if not held:
        return
    keys = [row[:3] for row in held]
    connection.executemany(SQL["finish_delivery"], [(*key, fence + n) for n, key in enumerate(keys)]).fetchall()
    connection.executemany(SQL["notification_sent"], [(now, 1, key[1]) for key in keys])
    ids = [f"noop-{key[1].hex()}" for key in keys]
    connection.executemany(
        SQL["put_message_id"], [(1, "noop", this, key[1], 1) for this, key in zip(ids, keys, strict=True)]
    )
    connection.executemany(
        SQL["put_ledger"],
        [
            (1, key[1], now, "sent", _DETAIL % this, now + n)
            for n, (this, key) in enumerate(zip(ids, keys, strict=True))
        ],
    )


_DETAIL = '{"started_at":"2026-01-01T00:00:00.000000+00:00","message_id":"%s","endpoint":1}'


def _open(population: Population) -> apsw.Connection:
    connection = population.open()
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    return connection


def _columns(statement: str) -> str:
    """The columns that a statement fills, in their order."""
    text = SQL[statement]
    return text[text.index("(") + 1 : text.index(")")]
