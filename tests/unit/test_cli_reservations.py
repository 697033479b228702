"""`noroshi reservations` and `python -m noroshi.reservations.cron` (L10)."""

import asyncio
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from rich.console import Console
from tests.reservation_cast import FARM, HANAKO
from tests.stand_ins.line.process import LineStandIn
from typer.testing import CliRunner

from noroshi.bootstrap.back import opened_back
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant
from noroshi.domain.line import LineAnswer
from noroshi.domain.reservations import FarmId, NewReservation, Payment
from noroshi.entrypoints.cli import shop_play, starting
from noroshi.entrypoints.cli.main import app
from noroshi.settings import read_settings

FAR = Instant(4_000_000_000_000_000)


class Recorded:
    """LINE, for a command: takes everything, and tells what."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        self.texts.append(text)
        return LineAnswer(200, "{}")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one job that is due."""
    for name in ("NOTIFICATION_CRON_DRY_RUN", "NOTIFICATION_CRON_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    asyncio.run(_fill(tmp_path))
    return tmp_path


async def _fill(folder: Path) -> None:
    async with opened_back(read_settings({}, {"data": str(folder)})) as back:
        shop = back.shop
        farm = await shop.reservations.put_farm(DEFAULT_TENANT, msgspec.structs.replace(FARM, farm_id=FarmId(0)))
        assert farm is not None
        await shop.reservations.put_customer(DEFAULT_TENANT, HANAKO)
        new = NewReservation(
            farm_id=farm.farm_id,
            customer_id=HANAKO.customer_id,
            pickup_start=FAR,
            pickup_end=Instant(FAR + 1),
            pickup_code="0417",
            total=0,
        )
        booking = await shop.reservations.add(DEFAULT_TENANT, new)
        assert booking is not None
        payment = Payment(booking.reservation.reservation_id, 0, "jpy", "pi_1")
        await shop.schedule_for_reservation(DEFAULT_TENANT, payment)


def run(data: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["reservations", "send-pending", "--data", str(data), *words])


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    monkeypatch.setattr(starting, "opened_back", lambda settings: opened_back(settings, line=recorded))
    return recorded


def test_a_run_says_what_it_sent_and_is_silent_when_there_is_nothing(data: Path, line: Recorded) -> None:
    # L10
    first, second = run(data), run(data)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert msgspec.json.decode(first.stdout)["summary"]["sent"] == 1
    assert second.output == ""
    assert len(line.texts) == 1


@pytest.mark.parametrize("word", ["true", "TRUE", " true "])
def test_a_dry_run_by_the_environment_sends_nothing(
    data: Path, line: Recorded, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    # L10, S1 9
    monkeypatch.setenv("NOTIFICATION_CRON_DRY_RUN", word)
    report = msgspec.json.decode(run(data).stdout)
    assert (report["summary"]["dry_run"], report["summary"]["dry_run_count"], line.texts) == (True, 1, [])


def test_a_dry_run_by_the_option_sends_nothing(data: Path, line: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    # L10
    monkeypatch.setenv("NOTIFICATION_CRON_DRY_RUN", "false")
    assert msgspec.json.decode(run(data, "--dry-run").stdout)["results"][0]["result"] == "DRY_RUN"
    assert line.texts == []


@pytest.mark.parametrize("word", ["1", "yes", "on", "ture", ""])
def test_a_word_that_is_neither_true_nor_false_sends_nothing(
    data: Path, line: Recorded, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    # S1 9: a safety device must not fail open
    monkeypatch.setenv("NOTIFICATION_CRON_DRY_RUN", word)
    ended = run(data)
    assert (ended.exit_code, line.texts) == (2, [])
    assert "NOTIFICATION_CRON_DRY_RUN must be true or false" in ended.stderr


def test_the_limit_comes_from_the_option_or_the_environment(
    data: Path, line: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    # L10
    asyncio.run(_fill(data))
    for many in ("0", "1001"):
        assert run(data, "--limit", many).exit_code == 2
    for many in ("0", "1001", "many"):
        monkeypatch.setenv("NOTIFICATION_CRON_LIMIT", many)
        assert run(data).exit_code == 2
    assert line.texts == []
    monkeypatch.setenv("NOTIFICATION_CRON_LIMIT", "1000")
    by_environment = msgspec.json.decode(run(data, "--dry-run").stdout)["summary"]
    assert (by_environment["total_candidates"], by_environment["processed"]) == (2, 2)
    by_option = msgspec.json.decode(run(data, "--limit", "1").stdout)["summary"]
    assert (by_option["total_candidates"], by_option["processed"], by_option["sent"]) == (2, 1, 1)
    assert len(line.texts) == 1


def test_without_a_token_a_due_job_stays_pending_and_the_run_says_why(data: Path) -> None:
    # L15
    ended = run(data)
    assert ended.exit_code == 2
    assert "LINE_MESSAGING_CHANNEL_ACCESS_TOKEN" in ended.stderr
    assert msgspec.json.decode(run(data, "--dry-run").stdout)["summary"]["total_candidates"] == 1


def test_cron_is_the_same_command_as_a_module(data: Path) -> None:
    # L10
    words = [sys.executable, "-m", "noroshi.reservations.cron", "--data", str(data), "--dry-run"]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert msgspec.json.decode(ended.stdout)["summary"]["dry_run_count"] == 1


def test_cron_sends_over_line_itself_and_then_has_nothing_to_say(data: Path, tmp_path: Path) -> None:
    # L10, L15: the real command, a real socket, LINE's own ledger
    words = [sys.executable, "-m", "noroshi.reservations.cron", "--data", str(data)]
    with LineStandIn(tmp_path / "ledger") as line:
        runs = [
            subprocess.run(words, env=os.environ | line.environment, capture_output=True, text=True, check=True)
            for _ in range(2)
        ]
        (pushed,) = line.pushed()
    assert msgspec.json.decode(runs[0].stdout)["summary"]["sent"] == 1
    assert (runs[1].stdout, runs[1].stderr) == ("", "")
    assert (pushed.to, len(pushed.texts)) == (HANAKO.line_user_id, 1)


def test_the_demo_plays_a_day() -> None:
    # L4, L6, L7, L11
    shown = StringIO()
    asyncio.run(shop_play.play_day(0, Console(file=shown, width=120)))
    text = shown.getvalue()
    messages = [line.split()[2:4] for line in text.splitlines() if line.startswith("╭")]
    assert messages == [["花子", "07:00"], ["花子", "08:00"], ["太郎", "09:30"], ["次郎", "15:00"], ["太郎", "18:30"]]
    assert text.count("SENT") == 5
    assert text.count("DASH") == 4
