"""Real processes and real load: they are started, killed and insisted upon as the scenarios will."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.machinery.load import Load, contradictions
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi
from tests.faults.machinery.reckoning import Answered

STUB = (sys.executable, "-m", "tests.stand_ins.stub_product")
BODY: dict[str, Any] = {"user_ids": ["hanako"], "template_id": "welcome"}


def served(tmp_path: Path, ready_within: float = 30, **environment: str) -> ServedNoroshi:
    return ServedNoroshi(tmp_path / "data", environment, STUB, ready_within)


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[ServedNoroshi]:
    with served(tmp_path) as product:
        product.start()
        yield product


def post(product: ServedNoroshi, bodies: dict[str, dict[str, Any]], seconds: float = 10) -> Load:
    load = Load(product.url, product.create_key(), bodies, callers=8)
    asyncio.run(load.run(seconds))
    return load


def bodies(count: int) -> dict[str, dict[str, Any]]:
    return {f"key-{number}": BODY for number in range(count)}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_killed_process_starts_again_on_the_same_folder_and_port(stub: ServedNoroshi) -> None:
    url = stub.url
    load = post(stub, bodies(1))
    stub.kill()
    with pytest.raises(RuntimeError, match="not running"):
        stub.kill()
    stub.start()
    assert stub.url == url
    again = post(stub, bodies(1))
    assert again.posted["key-0"].heard[0].status == 409
    assert again.posted["key-0"].batch_id == load.posted["key-0"].batch_id
    assert stub.log().count("stub starts") == 2


def test_a_stopped_process_says_how_it_ended(stub: ServedNoroshi) -> None:
    assert stub.stop() == 0


def test_nothing_is_left_running_whatever_the_test_did(tmp_path: Path) -> None:
    pids = []
    with pytest.raises(ZeroDivisionError), served(tmp_path) as product:
        for _ in range(2):
            product.start()
            pids.append(product.pid)
            product.kill()
        product.start()
        pids.append(product.pid)
        raise ZeroDivisionError
    assert not any(is_alive(pid) for pid in pids)


def test_children_of_a_killed_process_are_ended_too(tmp_path: Path) -> None:
    with served(tmp_path, STUB_HAS_CHILD="1") as product:
        product.start()
        child = int((product.data / "child").read_text())
        product.kill()
        assert is_alive(child)
    # Its new parent reaps it, in its own time.
    until = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < until and not is_zombie(child):
        time.sleep(0.01)
    assert not is_alive(child) or is_zombie(child)


def test_a_process_that_ends_early_is_reported_with_its_log(tmp_path: Path) -> None:
    with served(tmp_path, STUB_BROKEN="1") as product, pytest.raises(NotReadyError, match="broken on purpose"):
        product.start()


def test_a_process_that_never_gets_ready_is_reported(tmp_path: Path) -> None:
    with served(tmp_path, ready_within=0.5, STUB_STUBBORN="1") as product, pytest.raises(NotReadyError, match="within"):
        product.start()


def test_a_suspended_process_answers_later(stub: ServedNoroshi) -> None:
    async def post_during_freeze() -> Load:
        load = Load(stub.url, "nrs_stub", bodies(1))
        with stub.suspended():
            running = asyncio.create_task(load.run(10))
            await asyncio.sleep(0.2)
            assert load.outstanding == 1
        await running
        return load

    assert [heard.status for heard in asyncio.run(post_during_freeze()).posted["key-0"].heard] == [202]


def test_an_answer_that_was_dropped_is_asked_for_again_with_the_same_key(tmp_path: Path) -> None:
    # W2
    with served(tmp_path, STUB_DROPS="3") as product:
        product.start()
        load = post(product, bodies(30))
    stories = [tuple(heard.status for heard in posted.heard) for posted in load.posted.values()]
    assert stories.count((None, 409)) == 10
    assert stories.count((202,)) == 20
    assert {posted.answered for posted in load.posted.values()} == {Answered.ACCEPTED}
    assert contradictions(load) == []


def test_a_503_is_asked_again_and_a_4xx_is_final(tmp_path: Path) -> None:
    with served(tmp_path, STUB_FAILS="4") as product:
        product.start()
        load = post(product, {**bodies(20), "bad": {**BODY, "template_id": "unknown"}})
    assert load.posted["bad"].answered is Answered.REFUSED
    assert [heard.code for heard in load.posted["bad"].heard] == ["unknown_template"]
    heard = [one.status for posted in load.posted.values() for one in posted.heard]
    assert heard.count(202) == 20
    assert heard.count(503) >= 5


def test_a_load_goes_on_through_a_kill_and_gets_every_answer(stub: ServedNoroshi) -> None:
    async def kill_under_load() -> Load:
        load = Load(stub.url, "nrs_stub", bodies(2000), callers=8)
        running = asyncio.create_task(load.run(30))
        while sum(bool(posted.heard) for posted in load.posted.values()) < 100:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(stub.kill)
        await asyncio.to_thread(stub.start)
        await running
        return load

    load = asyncio.run(kill_under_load())
    assert any(heard.status is None for posted in load.posted.values() for heard in posted.heard)
    assert {posted.answered for posted in load.posted.values()} == {Answered.ACCEPTED}
    assert contradictions(load) == []
    assert load.outstanding == 0


def test_control_a_product_that_forgets_its_keys_contradicts_itself(tmp_path: Path) -> None:
    # I5
    with served(tmp_path, STUB_FORGETS="1") as product:
        product.start()
        load = Load(product.url, "nrs_stub", bodies(1))
        asyncio.run(load.run(10))
        product.kill()
        product.start()
        asyncio.run(load.run(10))
    assert contradictions(load) == ["key-0"]


def test_what_cannot_be_answered_in_time_stays_unanswered(tmp_path: Path) -> None:
    load = Load(served(tmp_path).url, "nrs_stub", bodies(3))
    asyncio.run(load.run(0.3))
    assert {posted.answered for posted in load.posted.values()} == {Answered.NOTHING}
    assert all(posted.answered_at is None for posted in load.posted.values())
