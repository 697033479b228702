"""The command line and the demonstration as a newcomer meets them: a real server, and words typed beside it."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from noroshi.entrypoints.cli import showing
from noroshi.entrypoints.cli.main import COMMANDS, app
from tests.stories.demonstration import Demonstration, demonstrated, each_store  # noqa: F401

pytestmark = pytest.mark.xdist_group("command-line")

PATIENCE = 20
NOTHING = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def beside(shown: Demonstration, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second terminal in the same folder: nothing is set."""
    for name in [name for name in os.environ if name.startswith("NOROSHI_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(shown.folder)


def noroshi(*words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=text)


def done(*words: str, text: str | None = None) -> str:
    result = noroshi(*words, text=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def until(is_so: Callable[[], bool]) -> None:
    """What was accepted is sent a moment later."""
    deadline = monotonic() + PATIENCE
    while not is_so():
        assert monotonic() < deadline


def answer(*words: str) -> Any:
    return json.loads(done(*words, "--json"))


# the demonstration


def test_the_printed_commands_can_be_pasted(shown: Demonstration) -> None:  # DESIGN 8
    send, arrived, why = (line for line in shown.text.splitlines() if line.startswith("curl "))
    assert json.loads(shown.run(send).stdout)["accepted"] == 1
    until(lambda: "へようこそ。" in shown.run(arrived).stdout)
    assert json.loads(shown.run(why).stdout)["items"][0]["user_id"] == "hanako"


def test_each_fate_is_explained_by_the_command_that_was_printed(shown: Demonstration) -> None:  # issue 4
    said = {
        "sent": "The provider took it.",
        "deferred": "It waits until the person's quiet hours end.",
        "suppressed": "The person has turned this category off.",
        "rate-limited": "The person had as many on this channel as the limit allows.",
        "dead-lettered": "It was given up. The provider said: UNREGISTERED",
        "retried, then sent": "The attempt failed; it is tried again. The provider said: SERVER_ERROR",
    }
    commands = {title.partition(":")[0]: command for title, command in shown.explanations.items()}
    assert commands.keys() == said.keys()
    for fate, sentence in said.items():
        words = commands[fate].partition(" explain ")[2].split()
        assert sentence in done("explain", *words), fate
    assert shown.run(commands["sent"]).returncode == 0


def test_the_key_is_kept_for_its_owner_alone(shown: Demonstration) -> None:  # RELIABILITY 5.2
    kept = shown.folder / ".noroshi" / "client.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text()) == {"url": shown.url, "key": shown.key}


def test_a_second_start_adds_nothing_and_is_quick(
    shown: Demonstration, store: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:  # issue 4
    for name, value in store.items():
        monkeypatch.setenv(f"NOROSHI_{name.upper()}", value)

    def everything() -> list[Any]:
        """But the tickets to the console: every start prints another."""
        rows = [answer(name, "list") for name in ("users", "templates", "keys", "dead-letters")]
        return [[row for row in each if row.get("name") != "console ticket"] for each in rows]

    before = everything()
    key, explanations = shown.key, shown.explanations
    assert shown.stop() == 0
    began = monotonic()
    shown.start()
    assert monotonic() - began < 15
    assert (shown.key, shown.explanations) == (key, explanations)
    assert everything() == before


# sending and explaining


def test_a_message_is_sent_and_its_fate_shown() -> None:
    text = done("send", "--user", "hanako", "--user", "nobody", "--template", "welcome", "--data", "shop=Here")
    assert re.search(r"hanako +email +SENT +The provider took it", text)
    assert re.search(r"nobody +not told +unknown_user", text)
    batch_id = text.split()[-1]
    explained = done("explain", batch_id)
    assert "2 named, 1 told, 1 not (unknown_user=1)" in explained
    one = answer("explain", batch_id)["items"][0]
    assert f"notification {one['notification_id']}" in done("explain", one["notification_id"])


def test_a_person_is_explained_by_name() -> None:
    assert "pierre on email: SUPPRESSED (category_off)" in done("explain", "pierre")
    assert answer("explain", "pierre", "--limit", "1")[0]["reason"] == "category_off"


def test_data_comes_as_pairs_as_json_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "more.json"
    file.write_text('{"d": "from the file", "e": {"f": [1]}}')
    done("templates", "put", "typed", "-c", "sms", "-l", "ja", "--body", "{{ [a, b, c, d, e.f] | tojson }}")
    words = ["a=007", "b:=7", '{"c": true, "d": 0}', f"@{file}"]
    shown = answer("templates", "preview", "typed", "-c", "sms", *(part for word in words for part in ("-d", word)))
    assert json.loads(shown["body"]) == ["007", 7, True, "from the file", [1]]
    assert noroshi("templates", "preview", "typed", "-c", "sms", "-d", "a:=oops").exit_code == 2


def test_files_go_with_the_mail_and_others_are_refused(tmp_path: Path) -> None:  # N1.4
    written, picture = tmp_path / "請求書.pdf", tmp_path / "logo.png"
    written.write_bytes(b"%PDF-\xff")
    picture.write_bytes(b"\x89PNG")
    files = ["--attach", str(written), "--attach", str(picture)]
    send = ["send", "-t", "welcome", "-u", "hanako", "-c", "email", "-d", "shop=Files"]
    sent = answer(*send, *files)
    batch_id = sent["accepted"]["batch_id"]
    told = [(one["filename"], one["content_type"], one["size"]) for one in answer("explain", batch_id)["attachments"]]
    assert told == [("請求書.pdf", "application/pdf", 6), ("logo.png", "image/png", 4)]
    assert "請求書.pdf" in done("explain", batch_id)
    refused = noroshi(*send, "--attach", str(tmp_path / "nothing"))
    assert refused.exit_code == 2 and "cannot be read" in refused.output


def test_many_people_come_from_a_file() -> None:
    sent = noroshi("send", "--users-from", "-", "-t", "welcome", "-d", "shop=Many", "--json", text="alice\n\npierre\n")
    assert json.loads(sent.stdout)["accepted"]["total_recipients"] == 2


def test_a_repeated_send_with_its_key_sends_nothing_more() -> None:  # N4.2
    words = ["send", "-u", "priya", "-t", "welcome", "-d", "shop=Once", "--idempotency-key", "once", "--json"]
    first, second = json.loads(noroshi(*words).stdout), json.loads(noroshi(*words).stdout)
    assert first["accepted"]["batch_id"] == second["accepted"]["batch_id"]


def test_what_ends_without_success_is_exit_code_1() -> None:
    done("users", "put", "brief", "--phone", "+442071838751")
    done("templates", "put", "broken", "-c", "voice", "-l", "en", "--body", "{{ a.b.c }}")
    failed = noroshi("send", "-u", "brief", "-t", "broken", "-c", "voice")
    assert failed.exit_code == 1
    assert "DEAD_LETTERED" in failed.stdout


def test_what_is_still_on_its_way_is_exit_code_4_and_a_pause_loses_nothing() -> None:
    assert "voice" in done("pause", "channel", "voice")
    assert answer("pause")[0]["name"] == "voice"
    waiting = noroshi("send", "-u", "hanako", "-t", "security-code", "-c", "voice", "--wait", "0.2", "--json",
                      "-d", "code=1234", "-d", "minutes=5")  # fmt: skip
    assert waiting.exit_code == 4
    assert done("resume", "channel", "voice") == "Nothing is paused.\n"
    batch_id = json.loads(waiting.stdout)["accepted"]["batch_id"]
    until(lambda: answer("explain", batch_id)["items"][0]["status"] == "SENT")
    refused = noroshi("resume", "channel", "voice")
    assert (refused.exit_code, "is not paused" in refused.stderr) == (2, True)


def test_what_is_scheduled_is_not_waited_for() -> None:
    sent = answer("send", "-u", "hanako", "-t", "welcome", "-d", "shop=Later", "--at", "2099-01-01T09:00+09:00")
    assert sent["accepted"]["status"] == "scheduled"
    assert "scheduled for 2099" in done("explain", sent["accepted"]["batch_id"])


# people, templates, dead letters


def test_a_person_is_registered_changed_shown_and_erased() -> None:
    done("users", "put", "mika", "--name", "Mika", "--email", "mika@example.com", "--attribute", "plan=gold")
    done("users", "put", "mika", "--locale", "en", "--attribute", "seats:=2")
    shown = answer("users", "show", "mika")["user"]
    assert (shown["name"], shown["locale"], shown["attributes"]) == ("Mika", "en", {"plan": "gold", "seats": 2})
    assert "mika@example.com" in done("users", "show", "mika")
    done("users", "put", "mika", "--email", "")
    assert answer("users", "show", "mika")["user"]["email"] is None
    assert [user["user_id"] for user in answer("users", "list", "--prefix", "mi")] == ["mika"]
    assert noroshi("users", "remove", "mika", text="n\n").exit_code == 2
    done("users", "remove", "mika", "--yes")
    assert noroshi("users", "show", "mika").exit_code == 2


def test_a_template_is_written_shown_previewed_and_rolled_back(tmp_path: Path) -> None:
    file = tmp_path / "parcel.toml"
    file.write_text('[[version]]\nchannel = "sms"\nlocale = "en"\nbody = "Parcel {{ n }}"\n')
    assert "version 1 is in use" in done("templates", "put", "parcel", str(file))
    body = tmp_path / "body.txt"
    body.write_text("Second {{ n }}")
    done("templates", "put", "parcel", "-c", "sms", "-l", "en", "--body", f"@{body}")
    assert "Second 7" in done("templates", "preview", "parcel", "-c", "sms", "-l", "en", "-d", "n=7")
    done("templates", "rollback", "parcel", "1", "-c", "sms", "-l", "en")
    text = done("templates", "show", "parcel")
    assert re.search(r"sms +en +1 +in use", text)
    assert "Parcel {{ n }}" in text
    assert "parcel" in [template["template_id"] for template in answer("templates", "list")]


@pytest.mark.parametrize("written", ["nonsense", '[[version]]\nchannel = "sms"', "[[version]]\nbodi = 1"])
def test_a_file_that_is_no_template_is_refused_with_the_reason(tmp_path: Path, written: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(written)
    refused = noroshi("templates", "put", "wrong", str(file))
    assert (refused.exit_code, "wrong.toml" in re.sub(r"[\s│]", "", refused.stderr)) == (2, True)


def test_dead_letters_are_listed_shown_replayed_and_discarded() -> None:
    done("users", "put", "lost", "--phone", "+442071838752")
    done("templates", "put", "lossy", "-c", "voice", "-l", "en", "--body", "{{ x.y }}")
    for n in (1, 2):
        noroshi("send", "-u", "lost", "-t", "lossy", "-c", "voice", "-d", f"n={n}")
    first, second = answer("dead-letters", "list", "--user", "lost")
    assert "render_error" in done("dead-letters", "list", "--user", "lost").lower()
    assert "dead letter" in done("dead-letters", "show", str(first["dead_letter_id"]))
    done("templates", "put", "lossy", "-c", "voice", "-l", "en", "--body", "Mended")
    assert answer("dead-letters", "replay", str(first["dead_letter_id"]))["replayed"] == 1
    assert answer("dead-letters", "discard", str(second["dead_letter_id"]), "--yes")["discarded"] == 1
    assert answer("dead-letters", "replay", "--user", "nobody") == {
        "replayed": 0, "untouched": 0, "is_complete": True,
    }  # fmt: skip
    assert noroshi("dead-letters", "replay").exit_code == 2


def test_what_people_copy_is_never_cut_however_narrow_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = answer("dead-letters", "list", "--user", "kenji")[0]
    monkeypatch.setattr(showing, "_UNFOLDED", 60)
    assert str(letter["dead_letter_id"]) in done("dead-letters", "list")
    sent = done("send", "-u", "alice", "-t", "order-shipped", "-c", "sms", "-d", "order_id=1", "-d", "arrives=now")
    assert re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sent)


# what goes wrong says what to do


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", NOTHING], "There is no such user"),
        (["send", "-u", "hanako", "-t", "no-such"], "Create it"),
        (["send", "-t", "welcome"], "name somebody"),
        (["send", "-u", "hanako", "-t", "welcome", "-d", "nonsense"], "name=text"),
        (["send", "-u", "hanako", "-t", "welcome", "--at", "tomorrow"], "2026-03-02T09:00"),
        (["users", "put", "x", "--email", "nonsense"], "email: Not an e-mail address."),
        (["dead-letters", "show", "1"], "There is no such dead letter."),
        (["templates", "show", "no-such"], "There is no such template."),
        (["resume"], "--all"),
        (["snd"], "send"),
    ],
)
def test_a_refusal_is_exit_code_2_and_says_what_to_do(words: list[str], said: str) -> None:
    refused = noroshi(*words)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.output


def test_nobody_at_the_address_is_exit_code_4_and_says_how_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("NOROSHI_KEY", "nrs_mine")
    refused = noroshi("users", "list")
    assert refused.exit_code == 4
    assert "make run" in refused.stderr
    assert "NOROSHI_URL" in refused.stderr


def test_a_wrong_key_and_no_key_say_how_to_get_one(
    shown: Demonstration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOROSHI_KEY", "nrs_wrong")
    wrong = noroshi("users", "list")
    monkeypatch.delenv("NOROSHI_KEY")
    monkeypatch.chdir(tmp_path)
    none = noroshi("users", "list")
    for refused in (wrong, none):
        assert refused.exit_code == 2
        assert "noroshi keys create" in refused.stderr
    assert "nrs_wrong" not in wrong.output
    assert "hanako" in done("users", "list", "--folder", str(shown.folder / ".noroshi"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    assert "Usage" in done(name, "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shown: Demonstration, shell: str) -> None:
    word = {"bash": "noroshi ex", "zsh": "noroshi ex", "fish": "noroshi ex"}[shell]
    ran = shown.run(
        ".venv/bin/noroshi",
        _NOROSHI_COMPLETE=f"complete_{shell}",
        COMP_WORDS=word,
        COMP_CWORD="1",
        _TYPER_COMPLETE_ARGS=word,
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert "explain" in ran.stdout, ran.stderr
