"""Backups: every row of every store comes back, in the same kind of store or in the other; what cannot be restored is
refused, and leaves nothing behind."""

import stat
import zipfile
from pathlib import Path

import pytest

from noroshi.bootstrap.back import opened_back
from noroshi.bootstrap.locking import DataLockedError
from noroshi.bootstrap.opening import open_noroshi
from noroshi.care.backup import back_up
from noroshi.care.errors import CareError
from noroshi.care.examination import examine
from noroshi.care.findings import Level
from noroshi.care.opening import opened_tables
from noroshi.care.restore import restore, resume, review
from noroshi.domain.enqueued import RequestState
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.notification_jobs import ClaimVerdict, JobKind, JobStatus, LeaseAnswer
from noroshi.machine.clock import SystemClock
from noroshi.machine.secrets import load_secrets
from noroshi.settings import Settings
from noroshi.storage import tables as whole_tables
from noroshi.storage.tables import Table
from tests.conformance.ground import Ground
from tests.conformance.places import Place, fill
from tests.conformance.shop_counter import Counter
from tests.conformance.stores import HandClock
from tests.conformance.whole import contents
from tests.reservation_cast import LINE_USER_ID

BOTH = pytest.mark.parametrize("store", ["sqlite", "postgres"])
EVERY_WAY = pytest.mark.parametrize(
    "store", ["sqlite-to-sqlite", "postgres-to-postgres", "sqlite-to-postgres", "postgres-to-sqlite"]
)


@EVERY_WAY
async def test_every_row_comes_back(store: str, place: Place, tmp_path: Path) -> None:
    kind, _, other = store.partition("-to-")
    source, target = place(kind), place(other)
    await fill(source)
    done = await back_up(source, tmp_path / "backup.zip")
    restored = await restore(target, tmp_path / "backup.zip")
    assert all(one.source == one.target for one in restored.copied)
    before, after = await contents(source), await contents(target)
    pause = after["pauses"].pop()
    assert after == before
    assert "restore" in pause
    assert done.manifest.rows == sum(len(rows) for rows in before.values())


@BOTH
async def test_an_interrupted_restore_goes_on_where_it_was(
    store: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_tables, "PAGE_ROWS", 7)
    source, target = place(store), place(store)
    await fill(source)
    await back_up(source, tmp_path / "backup.zip")
    steps: list[str] = []

    def stop_after_twenty(table: str, _done: int, _whole: int) -> None:
        steps.append(table)
        if len(steps) % 12 == 0:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            await restore(target, tmp_path / "backup.zip", stop_after_twenty)
        with pytest.raises(CareError, match="half restored"):
            await back_up(target, tmp_path / "half.zip")
    await back_up(source, tmp_path / "other.zip")
    with pytest.raises(CareError, match="half restored"):
        await restore(target, tmp_path / "other.zip")
    await restore(target, tmp_path / "backup.zip")
    before, after = await contents(source), await contents(target)
    after["pauses"].pop()
    assert after == before


@BOTH
async def test_a_store_with_rows_is_not_restored_into(store: str, place: Place, tmp_path: Path) -> None:
    source, target = place(store), place(store)
    await fill(source)
    await back_up(source, tmp_path / "backup.zip")
    async with opened_back(target) as back:
        await back.mint_key("shop", [])
    with pytest.raises(CareError, match="not empty"):
        await restore(target, tmp_path / "backup.zip")
    async with opened_tables(target, is_reader=True) as tables:
        assert await tables.ask("read_marks") == []


@BOTH
async def test_a_store_that_is_served_is_not_restored_into(store: str, place: Place, tmp_path: Path) -> None:
    source, target = place(store), place(store)
    await fill(source)
    await back_up(source, tmp_path / "backup.zip")
    serving = open_noroshi(target, is_dev=False, on_broken=lambda: None)
    await serving.start()
    with pytest.raises((CareError, DataLockedError), match=r"is served by process|stop its servers"):
        await restore(target, tmp_path / "backup.zip")
    await serving.stop()
    await restore(target, tmp_path / "backup.zip")


@BOTH
async def test_a_backup_sees_one_moment_whatever_is_written_meanwhile(store: str, place: Place, tmp_path: Path) -> None:
    source = place(store)
    await fill(source)
    before = await contents(source)
    async with opened_tables(source, is_reader=True) as tables:
        await fill_more(source)
        for table in await tables.list_tables():
            assert await tables.count(table) == len(before[table.name])
    assert await contents(source) != before


async def fill_more(settings: Settings) -> None:
    async with opened_back(settings) as back:
        await Ground(back.store, HandClock()).crowd(35)


@BOTH
async def test_the_file_is_the_owners_alone_and_has_no_address_and_no_key(
    store: str, place: Place, tmp_path: Path
) -> None:  # N17.2
    source = place(store)
    await fill(source)
    done = await back_up(source, tmp_path / "backup.zip", with_secrets=True)
    assert done.secrets is not None
    for path in (done.path, done.secrets):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(done.path) as archive:
        clear = b"".join(archive.read(name) for name in archive.namelist())
    assert b"hanako" in clear
    assert b"example.com" not in clear
    assert b"819012345678" not in clear
    assert LINE_USER_ID.encode() not in clear
    secrets = load_secrets(source.data, None)
    assert not [key for key in (secrets.pepper, secrets.blind_index, *secrets.masters.values()) if key in clear]


async def test_both_stores_keep_the_same_columns(place: Place) -> None:
    shapes: list[dict[str, set[str]]] = []
    for kind in ("sqlite", "postgres"):
        settings = place(kind)
        async with opened_back(settings), opened_tables(settings, is_reader=True) as tables:
            listed: list[Table] = await tables.list_tables()
            assert all(table.key for table in listed)
            shapes.append({table.name: set(table.columns) for table in listed})
    assert shapes[0] == shapes[1]


# requests that callers had enqueued


async def enqueue_one(settings: Settings) -> None:
    async with opened_tables(settings, is_reader=False) as tables:
        (requests,) = [table for table in await tables.list_tables() if table.name == "requests"]
        row = {"tenant": 1, "request_id": b"r" * 16, "body": b"{}", "state": 0, "created_at": 1, "created_by": "shop"}
        await tables.put(requests, [tuple(row.get(column) for column in requests.columns)])


@BOTH
@pytest.mark.parametrize("is_sent", [True, False], ids=["sent", "withdrawn"])
async def test_a_request_that_waited_then_waits_for_an_operator(
    store: str, is_sent: bool, place: Place, tmp_path: Path
) -> None:  # W31
    source, target = place(store), place(store)
    await fill(source)
    await enqueue_one(source)
    await back_up(source, tmp_path / "backup.zip")
    restored = (await restore(target, tmp_path / "backup.zip")).restored
    assert (await review(target)).doubts.requests == 1
    async with opened_back(target) as back:
        (request,) = await back.store.requests.list_requests(DEFAULT_TENANT, None, None, 10)
        assert (request.state, request.code) == (RequestState.DEAD, "restored")
    await resume(target, None if is_sent else restored.taken_at)
    async with opened_back(target) as back:
        (request,) = await back.store.requests.list_requests(DEFAULT_TENANT, None, None, 10)
    assert request.state is (RequestState.WAITING if is_sent else RequestState.DEAD)


# looking at it


@BOTH
async def test_the_doctor_finds_nothing_wrong_with_a_store_that_is_well(store: str, place: Place) -> None:
    settings = place(store)
    async with opened_back(settings) as back:
        await back.mint_key("shop", [])
    found = {one.subject: one for one in await examine(settings)}
    assert [one for one in found.values() if one.level is Level.PROBLEM] == []
    assert {"schema", "unfinished", "leases", "dead letters"} <= found.keys()


@BOTH
async def test_the_doctor_tells_of_a_schema_that_is_not_current(store: str, place: Place) -> None:
    settings = place(store)
    async with opened_tables(settings, is_reader=False) as tables:
        await tables.migrate(1)
    found = {one.subject: one for one in await examine(settings)}
    assert (found["schema"].level, found["schema"].advice) == (Level.WARNING, "`noroshi migrate`, or the next start")


# reservations


@BOTH
async def test_a_reservation_job_that_was_due_waits_for_a_person(store: str, place: Place, tmp_path: Path) -> None:
    # W31: what was sent after the backup is not sent again
    source, target = place(store), place(store)
    async with opened_back(source) as back:
        counter = await Counter(back.store, HandClock(SystemClock().now())).open()
        number = await counter.reserve()
        await counter.pay(number)
        await counter.claimed((await counter.job(number, JobKind.CONFIRMATION)).job_id)
    await back_up(source, tmp_path / "backup.zip")
    await restore(target, tmp_path / "backup.zip")
    async with opened_back(target) as back:
        counter = Counter(back.store, HandClock(SystemClock().now()))
        confirmation = await counter.job(number, JobKind.CONFIRMATION)
        assert confirmation.status is JobStatus.FAILED
        assert (confirmation.last_error or "").startswith("outcome unknown")
        assert (await counter.job(number, JobKind.REMINDER)).status is JobStatus.PENDING
        assert await counter.lease() is LeaseAnswer.PAUSED
    await resume(target, None)
    async with opened_back(target) as back:
        counter = Counter(back.store, HandClock(SystemClock().now()))
        again = await counter.claimed(confirmation.job_id, is_asked=True)
        assert again.decision.verdict is ClaimVerdict.SEND
