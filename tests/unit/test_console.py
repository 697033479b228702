"""The console's small parts: words, fates, drafts, envelopes, and a door that costs nothing until it is opened."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from noroshi.client.answers import BatchEntry, Sums, TemplateVersion
from noroshi.domain.states import Status
from noroshi.entrypoints.api import sentences
from noroshi.entrypoints.cli.main import app
from noroshi.entrypoints.console import catcher, words
from noroshi.entrypoints.console.drafts import read_draft, sample_data
from noroshi.entrypoints.console.fates import fate_of
from noroshi.entrypoints.console.pages import Pages
from noroshi.machine.envelopes import AesEnvelopes

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
KEYS = {1: bytes(range(32)), 2: bytes(range(1, 33))}


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=1.9), "just now"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=29, hours=23), "29 d ago"),
        (timedelta(days=31), "30 Jan"),
        (timedelta(days=70), "22 Dec 2025"),
        (timedelta(seconds=-0.5), "in a moment"),
        (timedelta(minutes=-5), "in 5 min"),
        (timedelta(days=-40), "11 Apr"),
    ],
)
def test_a_time_is_said_relative_to_now(span: timedelta, text: str) -> None:
    assert words.ago(NOW - span, NOW) == text


def test_a_time_is_exact_when_pointed_at_in_utc_and_on_the_persons_own_clock() -> None:
    assert words.exact(NOW) == "2026-03-02 09:00:00 UTC"
    assert words.exact(NOW, "Asia/Tokyo") == "2026-03-02 18:00:00 Asia/Tokyo · 2026-03-02 09:00:00 UTC"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("hanako@example.com", "h***@example.com"),
        ("+819012345678", "+81•••78"),
        ("12345", "•••"),
        ("", None),
        (None, None),
    ],
)
def test_an_address_is_shown_so_that_nobody_can_write_to_it(address: str | None, shown: str | None) -> None:  # N17.2
    assert words.masked(address) == shown


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("あ" * 70, 1),
        ("あ" * 71, 2),
        ("😀" * 35, 1),
        ("😀" * 36, 2),
        ("", 1),
    ],
)
def test_an_sms_is_counted_as_carriers_do(text: str, parts: int) -> None:
    assert words.sms_parts(text) == (len(text), parts)


@given(st.text())
def test_whatever_an_sms_holds_can_be_counted(text: str) -> None:
    assert words.sms_parts(text)[1] >= 1


def test_every_status_and_every_kind_of_entry_has_its_pill_and_tone() -> None:
    assert words.PILLS.keys() == {status.name for status in Status}
    assert words.TONES.keys() == set(sentences._WHAT_HAPPENED)
    assert {pill.tone for pill in words.PILLS.values()} <= {"good", "busy", "wait", "bad", "quiet"}


def test_every_icon_that_a_pill_names_is_drawn() -> None:
    drawn = Pages().render("_icons.html", {})
    names = {pill.icon for pill in words.PILLS.values()} | set(words.CHANNEL_NAMES)
    assert [name for name in names if f'id="i-{name}"' not in drawn] == []


def entry(**more: object) -> BatchEntry:
    fields = {"status": "queued", "accepted": 3, "rejected": 0, "undecided": 0, "scheduled_at": None} | more
    return BatchEntry(
        batch_id="", template_id="", channels=[], priority="", category="", created_at=NOW, created_by="",
        cancelled_at=None, total_recipients=3, sums=None, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sums", "pill", "text"),
    [
        (Sums(3, 3, 0, 0, 0, 0), "Delivered", "3 delivered"),
        (Sums(3, 1, 1, 1, 0, 0), "Under way", "1 delivered · 1 under way · 1 failed"),
        (Sums(3, 1, 2, 0, 0, 0), "2 failed", "1 delivered · 2 failed"),
        (Sums(3, 0, 3, 0, 0, 0), "Failed", "3 failed"),
        (Sums(3, 0, 0, 0, 3, 0), "Suppressed", "3 suppressed"),
        (Sums(0, 0, 0, 0, 0, 0), "Suppressed", "nobody to tell"),
        (None, "3 accepted", "3 under way"),
    ],
)
def test_a_batch_is_what_its_sums_say(sums: Sums | None, pill: str, text: str) -> None:
    fate = fate_of(entry(), sums)
    assert (fate.pill.text, fate.text) == (pill, text)
    assert sum(part.width for part in fate.parts) == pytest.approx(100 if fate.parts else 0, abs=0.05)


def test_a_batch_that_waits_or_was_withdrawn_says_so() -> None:
    assert fate_of(entry(status="scheduled"), Sums(1, 0, 0, 1, 0, 0)).text == "1 scheduled"
    assert fate_of(entry(status="cancelled"), Sums(1, 0, 0, 0, 0, 1)).pill.text == "Cancelled"
    assert fate_of(entry(undecided=2), None).pill.text == "Processing"


def version(**more: object) -> TemplateVersion:
    fields = {"subject": None, "title": None, "body": "", "metadata": {}} | more
    return TemplateVersion(
        template_id="t", version=1, channel="email", locale="en", variant="", is_active=True, created_by="",
        created_at=NOW, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def test_sample_data_has_everything_that_a_text_asks_for() -> None:
    asked = version(
        subject="{{ order.id }}", body="{% for x in items %}{{ x.name }}{% endfor %} {{ user.name }} {{ shop|upper }}",
        metadata={"html_body": "{% if gift %}{{ gift }}{% endif %}", "data": {"link": ["{{ link }}"]}},
    )  # fmt: skip
    sample = sample_data(asked)
    assert all(f'"{name}"' in sample for name in ("order", "id", "items", "shop", "gift", "link"))
    assert '"items": []' in sample
    assert "user" not in sample
    assert sample_data(version(body="{% broken")) == "{}"
    assert sample_data(version(body="{{ a }}{{ a.b }}")).startswith("{")


def test_a_draft_leaves_out_what_was_left_empty() -> None:
    form = {"channel": "push", "locale": "en", "title": "", "body": "B", "subtitle": "S", "other": '{"data": {"a": 1}}'}
    assert read_draft(form) == {
        "channel": "push",
        "locale": "en",
        "variant": "",
        "body": "B",
        "metadata": {"data": {"a": 1}, "subtitle": "S"},
    }


def test_an_envelope_opens_for_its_purpose_and_with_every_key_that_ever_closed_one() -> None:  # N17.2
    old, new = AesEnvelopes({1: KEYS[1]}), AesEnvelopes(KEYS)
    closed = old.close("visit", b"secret")
    assert b"secret" not in closed.encode()
    assert closed != old.close("visit", b"secret")
    assert new.open("visit", closed) == b"secret"
    assert new.open("other", closed) is None
    assert old.open("visit", new.close("visit", b"secret")) is None


@given(st.text() | st.binary().map(lambda raw: raw.hex()))
def test_nothing_else_opens(text: str) -> None:
    assert AesEnvelopes(KEYS).open("visit", text) is None


def test_a_server_whose_console_nobody_opens_does_not_carry_it() -> None:
    heavy = ("noroshi.client", "noroshi.entrypoints.console.app", "noroshi.entrypoints.console.pages")
    script = f"import sys, noroshi.entrypoints.cli.serving; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_command_prints_a_link_whose_ticket_opens_nothing_else(tmp_path: Path) -> None:  # DESIGN 8
    data = ["--data", str(tmp_path)]
    printed = CliRunner().invoke(app, ["console", *data])
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/console/enter\?ticket=nrs_\w{36}\n", printed.stdout), printed.output
    (row,) = json.loads(CliRunner().invoke(app, ["keys", "list", *data, "--json"]).stdout)
    assert (row["name"], row["scopes"]) == ("console ticket", "")
    assert row["expires_at"] is not None


def test_the_server_sends_as_many_rows_as_the_list_keeps() -> None:
    live_script = (files(catcher.__package__) / "assets" / "live.js").read_text(encoding="utf-8")
    [kept] = re.findall(r"^const MOST = (\d+);$", live_script, re.MULTILINE)
    assert int(kept) == catcher.ROWS_OF_A_LIST
