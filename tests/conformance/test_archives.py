"""Archives: a file that is no backup, is spoilt, or needs other keys is refused; a backup overwrites nothing."""

import zipfile
from pathlib import Path

import msgspec
import pytest

from noroshi.care.archive import Archive, Manifest
from noroshi.care.backup import back_up
from noroshi.care.errors import CareError
from noroshi.care.opening import opened_tables
from noroshi.care.restore import restore
from noroshi.domain.marks import Mark
from noroshi.machine.secrets import load_secrets
from noroshi.settings import read_settings
from tests.conformance.places import Place, fill


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
