"""Backups: every row of every store comes back, in the same kind of store or in the other; what cannot be restored is
refused, and leaves nothing behind."""

import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from noroshi.bootstrap import DataLock, DataLockedError, opened_back
from noroshi.care.archive import Archive, Manifest
from noroshi.care.backup import back_up
from noroshi.care.errors import CareError
from noroshi.care.examination import examine
from noroshi.care.findings import Level
from noroshi.care.opening import opened_tables
from noroshi.care.restore import restore
from noroshi.domain.deliveries import Verdict
from noroshi.domain.marks import Mark
from noroshi.machine.secrets import load_secrets
from noroshi.settings import Settings, read_settings
from noroshi.storage import tables as whole_tables
from noroshi.storage.tables import Table
from tests.cast import ALICE, HANAKO, JIRO, TARO
from tests.conformance.ground import Ground
from tests.conformance.stores import HandClock
from tests.conformance.whole import contents

BOTH = pytest.mark.parametrize("store", ["sqlite", "postgres"])
EVERY_WAY = pytest.mark.parametrize(
    "store", ["sqlite-to-sqlite", "postgres-to-postgres", "sqlite-to-postgres", "postgres-to-sqlite"]
)

Place = Callable[[str], Settings]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """`place("sqlite")`: settings of a store that is not there yet, all with the same keys."""
    with ExitStack() as ends:

        def build(kind: str) -> Settings:
            if kind == "postgres":
                url = ends.enter_context(request.getfixturevalue("postgres_databases").fresh())
            else:
                url = f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}"
            settings = read_settings({}, {"data": str(tmp_path / "data"), "store": url})
            load_secrets(settings.data, None)
            return settings

        yield build


async def fill(settings: Settings) -> None:
    """Something of everything: sent, dead, waiting, scheduled, rejected, and text of every kind."""
    async with opened_back(settings) as back:
        ground = Ground(back.store, HandClock())
        await ground.meet(HANAKO, TARO, JIRO, ALICE)
        await ground.crowd(30)
        await ground.write("welcome", "email", "push")
        await ground.accept(HANAKO, TARO, ALICE, key="once")
        for claim in (await ground.take()).claims:
            await ground.settle(claim, Verdict.SENT, message_id=f"m-{claim.recipient.user_id}-é\U0001f525")
        await ground.accept(JIRO, channels=["push"])
        await ground.keep(ground.batch("nobody", "taro", "hanako"), ground.batch("alice", after=timedelta(days=1)))
        await back.mint_key("shop", [])


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
    if store == "sqlite":
        lock = DataLock(target.data)
        with pytest.raises(DataLockedError):
            await restore(target, tmp_path / "backup.zip")
        lock.release()
    else:
        async with opened_back(target):
            with pytest.raises(CareError, match="stop its servers"):
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


# files that are no backups


async def a_backup(place: Place, tmp_path: Path) -> Path:
    source = place("sqlite")
    await fill(source)
    return (await back_up(source, tmp_path / "backup.zip")).path


def rewritten(path: Path, **changes: object) -> Path:
    """The same backup with another manifest."""
    copy = path.with_name("rewritten.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "manifest.json":
                manifest = msgspec.json.decode(text, type=Manifest)
                text = msgspec.json.encode(msgspec.structs.replace(manifest, **changes))
            new.writestr(name, text)
    return copy


async def test_a_file_that_is_no_backup_is_refused(place: Place, tmp_path: Path) -> None:
    target = place("sqlite")
    other = tmp_path / "letter.txt"
    with pytest.raises(CareError, match="cannot be read: No such file"):
        await restore(target, other)
    other.write_text("Dear Hanako")
    with pytest.raises(CareError, match="is no backup"):
        await restore(target, other)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as photos:
        photos.writestr("cat.jpg", b"cat")
    with pytest.raises(CareError, match="is no backup"):
        await restore(target, tmp_path / "photos.zip")
    assert not target.store_path.exists()


async def test_a_backup_that_is_cut_off_or_spoilt_is_refused(place: Place, tmp_path: Path) -> None:
    path = await a_backup(place, tmp_path)
    whole = path.read_bytes()
    short = tmp_path / "short.zip"
    short.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CareError, match="is no backup of Noroshi, or it is cut off"):
        Archive(short)
    place_of_users = whole.index(b"tables/users") + 40
    spoilt = tmp_path / "spoilt.zip"
    spoilt.write_bytes(whole[:place_of_users] + bytes(8) + whole[place_of_users + 8 :])
    target = place("sqlite")
    with pytest.raises(CareError, match="is damaged"):
        await restore(target, spoilt)
    async with opened_tables(target, is_reader=True) as tables:
        assert [name for name, _, _ in await tables.ask("read_marks")] == [Mark.RESTORING]


@pytest.mark.parametrize(("changes", "why"), [({"format": 2}, "newer version"), ({"schema": 999}, "schema 999")])
async def test_a_backup_of_a_newer_version_is_refused(
    place: Place, tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    path = rewritten(await a_backup(place, tmp_path), **changes)
    with pytest.raises(CareError, match=why):
        await restore(place("sqlite"), path)


async def test_without_the_keys_or_with_others_nothing_is_restored(place: Place, tmp_path: Path) -> None:
    path = await a_backup(place, tmp_path)
    store = f"sqlite:///{tmp_path / 'new.db'}"
    with pytest.raises(CareError, match="secrets is missing"):
        await restore(read_settings({}, {"data": str(tmp_path / "bare"), "store": store}), path)
    others = read_settings({}, {"data": str(tmp_path / "others"), "store": store})
    load_secrets(others.data, None)
    with pytest.raises(CareError, match="are not those of the backup"):
        await restore(others, path)
    assert not others.store_path.exists()


async def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(place: Place, tmp_path: Path) -> None:
    source = place("sqlite")
    with pytest.raises(CareError, match="there is no store"):
        await back_up(source, tmp_path / "backup.zip")
    await fill(source)
    (tmp_path / "taken.zip").write_text("mine")
    with pytest.raises(CareError, match="is there already"):
        await back_up(source, tmp_path / "taken.zip")
    with pytest.raises(CareError, match="cannot be written"):
        await back_up(source, tmp_path / "nowhere" / "backup.zip")

    def interrupt(table: str, _done: int, _whole: int) -> None:
        if table == "users":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await back_up(source, tmp_path / "backup.zip", interrupt)
    assert sorted(left_in(tmp_path)) == ["0.db", "data", "taken.zip"]


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


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
