"""The simulated machine: what its loop, its ports and its lives promise to the scenarios."""

import asyncio
import gc
import random
import warnings
from collections.abc import Iterator
from datetime import timedelta

import apsw
import pytest
from tests.faults.machinery.sim_loop import CrashError, RunawayError, SimLoop, StuckError, UnhandledError
from tests.faults.machinery.sim_machine import SimMachine
from tests.faults.machinery.sim_ports import SIM_START, render_counts

from noroshi.domain.instants import Instant
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice

SLOWEST = 50_000
"""Steps a second that even a busy machine reaches: the aim of 150,000 is measured on an idle one."""


@pytest.fixture(autouse=True)
def no_noise(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert capfd.readouterr().err == ""


def order_of(seed: int) -> list[str]:
    ran: list[str] = []

    async def walk(name: str) -> None:
        for step in range(3):
            ran.append(f"{name}{step}")
            await asyncio.sleep(0)

    async def walk_together() -> None:
        await asyncio.gather(*(walk(name) for name in "abcd"))

    SimLoop(random.Random(seed)).run_until_complete(walk_together())
    return ran


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    assert order_of(1) == order_of(1)
    assert len({tuple(order_of(seed)) for seed in range(20)}) == 20


def test_a_week_of_sleep_takes_no_time() -> None:
    loop = SimLoop(random.Random(1), start=5.0)
    loop.run_until_complete(asyncio.sleep(7 * 86_400))
    assert loop.time() == 5.0 + 7 * 86_400


def test_timers_fire_in_the_order_of_their_times() -> None:
    loop = SimLoop(random.Random(3))
    fired: list[int] = []
    for delay in (3, 1, 2):
        loop.call_later(delay, fired.append, delay)
    loop.run_until_idle(10)
    assert fired == [1, 2, 3]


def test_a_cancelled_timer_does_not_fire_and_is_cleared_out() -> None:
    loop = SimLoop(random.Random(3))
    fired: list[int] = []
    timers = [loop.call_later(second, fired.append, second) for second in range(1, 1001)]
    for timer in timers[:-1]:
        timer.cancel()
    assert len(loop._timers) < 200
    loop.run_until_idle(2000)
    assert fired == [1000]


def test_idle_means_that_the_next_timer_lies_beyond_the_deadline() -> None:
    loop = SimLoop(random.Random(1))
    task = loop.create_task(asyncio.sleep(10))
    loop.run_until_idle(9.5)
    assert not task.done()
    assert loop.time() == 9.5
    loop.run_until_idle(10)
    assert task.done()
    loop.close()


def test_a_time_out_works_in_virtual_time() -> None:
    async def wait() -> None:
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    loop = SimLoop(random.Random(1))
    with pytest.raises(TimeoutError):
        loop.run_until_complete(wait())
    assert loop.time() == 30


def test_waiting_for_what_can_never_come_is_an_error() -> None:
    with pytest.raises(StuckError):
        SimLoop(random.Random(1)).run_until_complete(asyncio.Event().wait())


def test_a_task_that_spins_is_an_error() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    loop = SimLoop(random.Random(1), max_steps=1000)
    with pytest.raises(RunawayError):
        loop.run_until_complete(spin())
    loop.close()


def test_an_exception_nobody_takes_care_of_stops_the_simulation() -> None:
    def break_down() -> None:
        raise ValueError("broken")

    loop = SimLoop(random.Random(1))
    loop.call_soon(break_down)
    with pytest.raises(UnhandledError) as caught:
        loop.run_until_idle(1)
    assert isinstance(caught.value.__cause__, ValueError)


def test_real_input_output_and_threads_are_refused() -> None:
    async def use_a_thread() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(NotImplementedError):
        SimLoop(random.Random(1)).run_until_complete(use_a_thread())


def test_a_frozen_process_wakes_up_after_its_timers_are_due() -> None:
    loop = SimLoop(random.Random(1))
    woken_at: list[float] = []
    loop.call_later(10, lambda: woken_at.append(loop.time()))
    loop.freeze(60)
    loop.run_until_idle(60)
    assert woken_at == [60]


def test_a_crash_at_a_step_ends_the_world_between_two_steps() -> None:
    # RELIABILITY 4.2 L1
    steps: list[int] = []

    async def count_up() -> None:
        for step in range(100):
            steps.append(step)
            await asyncio.sleep(1)

    loop = SimLoop(random.Random(1))
    loop.crash_at_step = 20
    with pytest.raises(CrashError):
        loop.run_until_complete(count_up())
    assert loop.steps == 20
    assert 0 < len(steps) < 20
    assert loop.is_closed()


def test_a_crashed_world_cannot_go_on_in_except_or_finally() -> None:
    machine = SimMachine(7)
    after_crash: list[str] = []

    async def cling_to_life() -> None:
        try:
            machine.crash_points.reach("send.before")
        except Exception:
            after_crash.append("except")
        finally:
            await asyncio.sleep(0)
            after_crash.append("finally after an await")

    with machine.life() as life, pytest.raises(CrashError):
        machine.crash_points.arm("send.before")
        life.loop.run_until_complete(cling_to_life())
    assert after_crash == []


def test_abandoned_tasks_of_every_kind_die_in_silence() -> None:
    machine = SimMachine(2)

    async def wait_stubbornly() -> None:
        while True:
            try:
                await asyncio.sleep(10)
            finally:
                await asyncio.sleep(10)

    async def fail() -> None:
        raise ValueError("never retrieved")

    async def start_all() -> None:
        tasks = [asyncio.create_task(wait_stubbornly()) for _ in range(5)]
        tasks.append(asyncio.create_task(fail()))
        await asyncio.sleep(5)
        machine.crash_points.reach("now")

    with machine.life() as life, pytest.raises(CrashError):
        machine.crash_points.arm("now")
        life.loop.run_until_complete(start_all())


def test_the_store_of_a_crashed_world_refuses_work_and_rolls_back() -> None:
    machine = SimMachine(5)
    where = "file:/machinery?vfs=memdb"
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    keeper = apsw.Connection(where, flags=flags)
    keeper.execute("CREATE TABLE kept (what)")
    refused: list[str] = []

    async def write() -> None:
        connection = apsw.Connection(where, flags=flags)
        connection.execute("INSERT INTO kept VALUES ('committed')")
        connection.execute("BEGIN IMMEDIATE; INSERT INTO kept VALUES ('uncommitted')")
        try:
            machine.crash_points.reach("commit.before")
        finally:
            try:
                connection.execute("COMMIT")
            except Exception as error:
                refused.append(type(error).__name__)

    with machine.life() as life, pytest.raises(CrashError):
        machine.crash_points.arm("commit.before")
        life.loop.run_until_complete(write())
    assert refused == ["WorldEndedError"]
    assert keeper.execute("SELECT what FROM kept").get == "committed"
    keeper.execute("INSERT INTO kept VALUES ('not locked')")
    keeper.close()


def test_the_next_life_begins_at_the_virtual_time_of_the_crash() -> None:
    machine = SimMachine(5)
    with machine.life() as life:
        life.loop.run_until_idle(100)
        before = machine.clock.now()
    with machine.life() as life:
        assert life.loop.time() == 100
        assert machine.clock.now() == before
        life.loop.run_until_complete(machine.clock.sleep(timedelta(seconds=1)))
        assert machine.clock.now() == before + 1_000_000


def test_the_wall_clock_may_jump_while_the_monotonic_one_goes_on() -> None:
    # W30
    machine = SimMachine(5)
    clock: Clock = machine.clock
    assert clock.now() == SIM_START
    machine.clock.wall_offset = timedelta(days=3)
    assert clock.now() == Instant(SIM_START + 3 * 86_400_000_000)
    assert clock.monotonic() == 0


def test_a_sleep_ends_on_the_very_microsecond() -> None:
    machine = SimMachine(5)
    expected = machine.clock.now()
    with machine.life() as life:
        for microseconds in (1, 3, 333_333, 86_399_999_999, 7):
            life.loop.run_until_complete(machine.clock.sleep(timedelta(microseconds=microseconds)))
            expected = Instant(expected + microseconds)
            assert machine.clock.now() == expected


def test_dice_are_seeded() -> None:
    dice: Dice = SimMachine(1).dice
    again = SimMachine(1).dice
    other = SimMachine(2).dice
    throws = [dice.bits(64), dice.fraction()]
    assert throws == [again.bits(64), again.fraction()]
    assert throws != [other.bits(64), other.fraction()]


def test_crash_points_count_and_crash_at_the_nth_reach() -> None:
    machine = SimMachine(1)
    points: CrashPoints = machine.crash_points
    points.reach("a")
    machine.crash_points.arm("a", nth=2)
    points.reach("b")
    points.reach("a")
    with pytest.raises(CrashError):
        points.reach("a")
    assert machine.crash_points.reached == {"a": 3, "b": 1}
    assert machine.crash_points.crashed == {"a": 1}
    assert "| b | 1 |" in render_counts("point", machine.crash_points.reached, ["c"])
    assert "| c | 0 |" in render_counts("point", machine.crash_points.reached, ["c"])


def test_crash_points_can_be_armed_for_any_name() -> None:
    machine = SimMachine(1)
    machine.crash_points.arm_any(3)
    machine.crash_points.reach("a")
    machine.crash_points.reach("b")
    with pytest.raises(CrashError, match="c"):
        machine.crash_points.reach("c")


def test_a_crash_says_at_which_point_each_task_stood() -> None:
    machine = SimMachine(1)

    async def send() -> None:
        machine.crash_points.reach("send.before")
        await asyncio.sleep(10)
        machine.crash_points.reach("send.after")

    with machine.life() as life, pytest.raises(CrashError):
        tasks = [life.loop.create_task(send()) for _ in range(3)]
        life.loop.run_until_idle(1)
        life.loop.crash_at_step = life.loop.steps
        life.loop.run_until_idle(20)
    assert machine.crash_points.standing == {"send.before": 3}
    assert machine.crash_points.reached["send.after"] == 0
    del tasks
