"""The server's keys: made once, read back, and refused when they are not safe."""

import os
import stat
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from noroshi.machine.secrets import SecretsError, derive_secrets, load_secrets

SECRET_KEY = urlsafe_b64encode(bytes(range(32))).decode()


def test_the_first_start_makes_the_file_for_its_owner_only_and_later_ones_read_it(tmp_path: Path) -> None:
    # DESIGN 5.10
    made = load_secrets(tmp_path / "new", None)
    path = tmp_path / "new" / "secrets"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_secrets(tmp_path / "new", None) == made
    assert [file.name for file in path.parent.iterdir()] == ["secrets"]
    assert len({*made.masters.values(), made.pepper, made.blind_index}) == 3


def test_two_folders_have_different_keys(tmp_path: Path) -> None:
    assert load_secrets(tmp_path / "a", None) != load_secrets(tmp_path / "b", None)


def test_a_file_that_another_process_made_first_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_secrets(tmp_path, None)
    monkeypatch.setattr(Path, "exists", lambda _path: False)  # as it was when both processes looked
    assert load_secrets(tmp_path, None) == first


def test_a_crash_before_the_file_is_whole_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def power_cut(_descriptor: int) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", power_cut)
        with pytest.raises(OSError, match="power cut"):
            load_secrets(tmp_path, None)
    assert not (tmp_path / "secrets").exists()
    assert load_secrets(tmp_path, None) == load_secrets(tmp_path, None)


def test_a_file_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    load_secrets(tmp_path, None)
    (tmp_path / "secrets").chmod(0o644)
    with pytest.raises(SecretsError, match=r"mode 0644\): chmod 600"):
        load_secrets(tmp_path, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks blind_index, master.1, pepper"),
        ("pepper = c2hvcnQ=\n", "pepper in .* must be 32 bytes"),
        (f"pepper = {SECRET_KEY}\nblind_index = {SECRET_KEY}\nmaster.300 = {SECRET_KEY}\n", "numbered"),
        ("pepper = 狼煙\n", "must be 32 bytes"),
    ],
)
def test_a_damaged_file_is_refused_without_showing_a_key(tmp_path: Path, text: str, message: str) -> None:
    # I12
    path = tmp_path / "secrets"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SecretsError, match=message) as caught:
        load_secrets(tmp_path, None)
    assert SECRET_KEY not in str(caught.value)


def test_a_store_without_its_keys_does_not_get_new_ones(tmp_path: Path) -> None:
    (tmp_path / "noroshi.db").touch()
    with pytest.raises(SecretsError, match="put the file back"):
        load_secrets(tmp_path, None)
    assert not (tmp_path / "secrets").exists()


def test_one_secret_gives_all_keys_each_its_own_and_always_the_same(tmp_path: Path) -> None:
    # DESIGN 5.10
    derived = load_secrets(tmp_path, SECRET_KEY)
    assert derived == derive_secrets(SECRET_KEY.rstrip("="))
    assert len({*derived.masters.values(), derived.pepper, derived.blind_index, bytes(range(32))}) == 4
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["", "c2hvcnQ", "not base64 at all!", SECRET_KEY * 2])
def test_a_secret_of_the_wrong_size_is_refused_without_showing_it(wrong: str) -> None:
    # I12
    with pytest.raises(SecretsError, match="NOROSHI_SECRET_KEY must be 32 bytes") as caught:
        derive_secrets(wrong)
    assert not wrong or wrong not in str(caught.value)


def test_keys_do_not_show_in_a_repr() -> None:
    # I12
    assert repr(derive_secrets(SECRET_KEY)) == "Secrets(...)"
