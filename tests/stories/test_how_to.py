"""The pages on sending from a shell and from Python, word for word: what they show works as it stands there."""

import asyncio
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noroshi.client import Noroshi
from tests.stories.demonstration import Demonstration, blocks

pytestmark = pytest.mark.xdist_group("how-to")

ROOT = Path(__file__).parents[2]
SHELL = ROOT / "docs" / "how-to" / "send-from-a-shell.md"
PYTHON = ROOT / "docs" / "how-to" / "send-from-python.md"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    started = Demonstration(tmp_path_factory.mktemp("newcomer"))
    (started.folder / "examples").symlink_to(ROOT / "examples")
    started.start()
    yield started
    started.kill()


def test_the_page_on_sending_from_a_shell_works_word_for_word(shown: Demonstration) -> None:
    (template,) = blocks(SHELL, "toml")
    (shown.folder / "shipped.toml").write_text(template)
    said = [shown.done(script) for script in blocks(SHELL, "sh")]
    told = "\n".join(said)
    assert len(said) > 6
    assert "order-shipped v1 ja" in told
    assert "Alice, parcel 17 is on its way." in told


def test_the_scripts_of_the_page_on_sending_from_python_work(shown: Demonstration) -> None:
    over_http, embedded = (shown.done(script) for script in blocks(PYTHON, "sh"))
    assert "hanako email SENT" in over_http
    assert embedded == "email Welcome Hello Hanako.\n"


PRELUDE = """
from noroshi.client import Noroshi
async with Noroshi.connect(url, key) as noroshi:
    accepted = await noroshi.send("hanako", "welcome", {"shop": "Python"})
"""


def test_the_code_of_the_page_on_sending_from_python_works(
    shown: Demonstration, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shown.folder)
    first, *_ = [asyncio.run(run_of(shown, code)) for code in blocks(PYTHON, "python")]
    assert "It was put into its lane to be sent." in capsys.readouterr().out
    ended = asyncio.run(ends_of(shown, first["accepted"].batch_id))
    assert ended == {
        ("hanako", "email"): "SENT",
        ("hanako", "push"): "SENT",
        ("hanako", "sms"): "SENT",
        ("alice", "email"): "SENT",
        ("alice", "push"): "SUPPRESSED",  # she has no device
        ("alice", "sms"): "SENT",
    }


async def run_of(shown: Demonstration, code: str) -> dict[str, Any]:
    """Runs a piece of the page, and gives what its names stand for at its end."""
    told = code.replace('"http://127.0.0.1:8000"', "url")
    if "async with" not in told:
        told = PRELUDE + textwrap.indent(told, "    ")
    names: dict[str, Any] = {"url": shown.url, "key": shown.key}
    exec("async def page():\n" + textwrap.indent(f"{told}\nreturn locals()", "    "), names)  # noqa: S102 - ours
    found: dict[str, Any] = await names["page"]()
    return found


async def ends_of(shown: Demonstration, batch_id: str) -> dict[tuple[str, str], str]:
    async with Noroshi.connect(shown.url, shown.key) as noroshi:
        async for _ in noroshi.follow(batch_id):
            pass
        batch = await noroshi.batch(batch_id)
    return {(one.user_id, one.channel): one.status for one in batch.items}
