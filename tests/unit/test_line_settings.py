"""LINE's settings: where the token comes from, and what stops the start."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.stand_ins.line.process import SECRET, TOKEN

from noroshi.flow.send.line.messaging.settings import SETTINGS, LineSettings, read_settings
from noroshi.flow.send.parts import Off
from noroshi.reservations.sender import ANSWERS_WITHIN
from noroshi.settings import SettingsError
from noroshi.settings import read_settings as read_all

TOKEN_VARIABLE = "LINE_MESSAGING_CHANNEL_ACCESS_TOKEN"
SECRET_VARIABLE = "LINE_MESSAGING_CHANNEL_SECRET"


def line(folder: Path, **environ: str) -> LineSettings | Off:
    return read_settings(read_all(environ, {"data": str(folder)}).values)


def test_a_token_is_all_it_takes(tmp_path: Path) -> None:  # L15
    settings = line(tmp_path, **{TOKEN_VARIABLE: TOKEN})
    assert settings == LineSettings(TOKEN, (), "https://api.line.me", 2_000, timedelta(seconds=10))


@pytest.mark.parametrize("name", [TOKEN_VARIABLE, "NOROSHI_LINE_CHANNEL_ACCESS_TOKEN"])
def test_the_token_may_lie_in_a_file(tmp_path: Path, name: str) -> None:  # L15
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    settings = line(tmp_path, **{f"{name}_FILE": str(tmp_path / "token")})
    assert isinstance(settings, LineSettings) and settings.token == TOKEN


def test_without_a_token_line_is_off(tmp_path: Path) -> None:
    off = line(tmp_path, **{SECRET_VARIABLE: SECRET})
    assert isinstance(off, Off) and TOKEN_VARIABLE in off.why


def test_one_secret_or_two_while_it_is_being_replaced(tmp_path: Path) -> None:
    settings = line(tmp_path, **{TOKEN_VARIABLE: TOKEN, "NOROSHI_LINE_CHANNEL_SECRET": f"{SECRET}, {'b' * 32}"})
    assert isinstance(settings, LineSettings) and settings.secrets == (SECRET, "b" * 32)


@pytest.mark.parametrize(
    "environ",
    [
        {TOKEN_VARIABLE: TOKEN, "NOROSHI_LINE_CHANNEL_ACCESS_TOKEN": TOKEN},
        {TOKEN_VARIABLE: TOKEN, f"{TOKEN_VARIABLE}_FILE": "token"},
        {SECRET_VARIABLE: SECRET, "NOROSHI_LINE_CHANNEL_SECRET": SECRET},
    ],
)
def test_a_secret_said_twice_stops_the_start(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="are both set"):
        line(tmp_path, **environ)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (TOKEN_VARIABLE, "two words"),
        (TOKEN_VARIABLE, "token\r\nX-Evil: 1"),
        (SECRET_VARIABLE, "a,,b"),
        ("NOROSHI_LINE_URL", "http://api.line.me"),
        ("NOROSHI_LINE_URL", "api.line.me"),
        ("NOROSHI_LINE_URL", "https://user@api.line.me"),
        ("NOROSHI_LINE_URL", "https://api.line.me?x=1"),
        ("NOROSHI_LINE_TIMEOUT", "0"),
        ("NOROSHI_LINE_TIMEOUT", "61"),
        ("NOROSHI_LINE_PER_SECOND", "fast"),
    ],
)
def test_what_cannot_be_right_stops_the_start_and_shows_no_secret(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError) as stopped:
        line(tmp_path, **({TOKEN_VARIABLE: TOKEN} | {name: value}))
    if "URL" not in name:
        assert TOKEN not in str(stopped.value) and "Evil" not in str(stopped.value)


def test_the_timeout_says_how_long_the_reservations_wait_at_most() -> None:
    # L9: their sender ends a push by its own limit, for it must answer within its lease
    (help_text,) = [row.help for row in SETTINGS if row.key == "line_timeout"]
    assert f"the reservations wait for {ANSWERS_WITHIN.total_seconds():.0f} at most" in help_text


def test_the_token_is_not_shown_by_accident() -> None:
    assert TOKEN not in repr(LineSettings(TOKEN, (SECRET,)))
    assert SECRET not in repr(LineSettings(TOKEN, (SECRET,)))
