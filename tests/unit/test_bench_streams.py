"""B8's own parts on real connections: a server that only writes, and onlookers that count."""

import resource
import subprocess
import sys

import pytest
from bench.b08_streams import Onlookers, bare_fan_out, lacking_files
from bench.held_streams import hold_rounds
from bench.server import BenchError, free_port

from noroshi.domain.ids import DEFAULT_TENANT, NotificationId
from noroshi.domain.inbox import InboxEntry, InboxHead, News, Owner
from noroshi.domain.instants import Instant
from noroshi.flow.send.in_app.inbox.live import LiveStreams


def news(who: str, *numbers: int) -> News:
    entries = tuple(InboxEntry(n, NotificationId(bytes(16)), "general", "{}", Instant(0)) for n in numbers)
    return News(Owner(DEFAULT_TENANT, who), InboxHead(1, 1, 0), entries)


def test_a_bare_fan_out_reaches_every_stream_once_a_round() -> None:
    found = bare_fan_out(5, 200)  # counts what every stream got
    assert found.rate > 0
    assert found.p99_ms is not None


def test_streams_beyond_the_open_files_of_this_machine_are_not_judged() -> None:
    row = lacking_files(10_000, 4_096)
    assert row is not None
    assert row.verdict.startswith("not judged: a process may have 4,096 files open here, 10,500 are needed")
    assert lacking_files(10_000, 20_000) is None
    assert lacking_files(10_000, resource.RLIM_INFINITY) is None


def test_both_ends_of_many_streams_take_as_many_open_files_as_they_may() -> None:
    asked = "import resource as r; from bench.stream_client import raise_file_limit as f; f();"
    lowered = f"ulimit -Sn 100; {sys.executable} -c '{asked} print(r.getrlimit(r.RLIMIT_NOFILE))'"
    told = subprocess.run(["/bin/sh", "-c", lowered], capture_output=True, text=True, check=True)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert told.stdout.strip() == f"({hard}, {hard})"


def test_onlookers_that_find_nobody_say_so() -> None:
    with pytest.raises(BenchError, match="onlookers"):
        Onlookers(free_port(), "", ["/"])


def test_a_round_begins_with_the_last_of_its_entries_and_with_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[News] = []
    monkeypatch.setattr(LiveStreams, "hand_over", lambda _self, news: told.extend(news))
    monkeypatch.setattr(LiveStreams, "look_into", LiveStreams.look_into)
    hold_rounds(2)
    first, second, only_read = news("hanako", 1), news("taro", 1), news("jiro")
    live = object.__new__(LiveStreams)
    live._followers = {first.owner: ()}
    live._dirty = {}
    live.hand_over([first])
    live.hand_over([only_read])
    live.look_everywhere()
    assert not live._dirty
    assert (told, capsys.readouterr().out) == ([only_read], "")
    live.hand_over([second])
    assert told == [only_read, first, second]
    assert len(capsys.readouterr().out.splitlines()) == 1
