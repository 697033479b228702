"""Templates that mean harm: each takes down at most its own recipient (RELIABILITY 5.6, F21).

Every bomb has a control: without the limit that is to stop it, it does go off.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from noroshi.domain.deliveries import Recipient
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.machine.rendering import child
from noroshi.machine.rendering.engine import CompiledTemplate, RenderError, check_template
from noroshi.machine.rendering.quarantine import HOPELESS
from noroshi.machine.rendering.renderer import ChildRenderer
from noroshi.ports.renderer import RenderJob

GREETING = "Hello {{ user.name }}"

PADDING = "{{ '%500000000s'|format('a') }}"
ENDLESS = "{% for a in range(99999) %}" * 3 + "x" + "{% endfor %}" * 3
DOUBLINGS = "{% set a = 'xxxxxxxx' %}" + "{% set a = a ~ a %}" * 25 + "{{ a }}"
MANY_DOUBLINGS = "{% set a = 'xxxxxxxx' %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}"
LJUST = "{{ 'a'.ljust(500000000) }}"
INDENT = "{{ 'a'|indent(500000000) }}"
LONG_JOIN = "{{ ([1] * 10000000)|join }}"
SLICES = "{{ [1]|slice(1000000000)|length }}"

GENTLE = [PADDING, ENDLESS, LJUST]
"""Bombs that the engine itself refuses: the child lives on."""

VIOLENT = [DOUBLINGS, MANY_DOUBLINGS, INDENT, LONG_JOIN, SLICES]
"""Bombs that go off inside one step of the engine, where only the end of the process helps."""

DATA_BOMB = "{% if user.attributes.width %}{{ 'a'|indent(user.attributes.width) }}{% endif %}" + GREETING
SLOW = "{% for a in range(600) %}{% for b in range(500) %}{% endfor %}{% endfor %}" + GREETING


def version(body: str, row: int = 1) -> TemplateVersion:
    return TemplateVersion(row, "t", "push", "ja", "", 1, None, None, body, {})


def person(number: int, **attributes: Any) -> Recipient:
    return Recipient(f"u{number}", f"name {number}", "ja", None, attributes)


def jobs(template: TemplateVersion, people: list[Recipient]) -> list[RenderJob]:
    data: dict[str, Any] = {}
    return [RenderJob(template, data, one) for one in people]


def crowd(count: int) -> list[Recipient]:
    return [person(number, width=0) for number in range(count)]


@pytest.fixture
async def rendering() -> AsyncIterator[ChildRenderer]:
    one = ChildRenderer()
    await one.start()
    yield one
    await one.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what happens in another process."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def proc_file(pid: int, name: str) -> str:
    """Empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def run_python(script: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, env=environment, check=False)


def assert_only_fails(contents: list[Content | RenderFailure], guilty: set[int]) -> None:
    assert {number for number, content in enumerate(contents) if isinstance(content, RenderFailure)} == guilty
    for number, content in enumerate(contents):
        if isinstance(content, Content):
            assert content.body == f"Hello name {number}"


def test_the_padding_bomb_is_refused_when_stored() -> None:
    assert check_template(version(PADDING)) == "body, line 1: the filter `format` is not allowed"
    assert check_template(version(LJUST)) == "body, line 1: the method `ljust` cannot be called; use a filter"


@pytest.mark.parametrize("bomb", GENTLE + VIOLENT, ids=lambda bomb: bomb[:30])
async def test_a_bomb_put_into_the_store_directly_fails_only_its_recipient(bomb: str, rendering: ChildRenderer) -> None:
    innocent = version(GREETING, row=2)
    mixed = [
        *jobs(innocent, crowd(250)),
        *jobs(version(bomb, row=3), [person(250)]),
        *jobs(innocent, [person(number) for number in range(251, 400)]),
    ]
    assert_only_fails(await rendering.render(mixed), {250})


@pytest.mark.parametrize("bomb", GENTLE, ids=lambda bomb: bomb[:30])
async def test_a_gentle_bomb_leaves_the_child_alive(bomb: str, rendering: ChildRenderer) -> None:
    before = rendering.pids()
    (failure,) = await rendering.render(jobs(version(bomb), [person(1)]))
    assert isinstance(failure, RenderFailure)
    assert rendering.pids() == before


@pytest.mark.parametrize("bomb", VIOLENT, ids=lambda bomb: bomb[:30])
def test_control_a_violent_bomb_without_its_limits_goes_off(bomb: str) -> None:
    """In a process of its own: the engine alone does not stop it within the time and memory it is to have."""
    script = (
        "import resource, signal, sys\n"
        "from noroshi.machine.rendering.engine import CompiledTemplate, RenderError\n"
        "from noroshi.domain.templates import TemplateVersion\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({2 * child.MEMORY}, {2 * child.MEMORY}))\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "compiled = CompiledTemplate(TemplateVersion(1, 't', 'push', 'ja', '', 1, None, None, sys.argv[1], {}))\n"
        f"signal.setitimer(signal.ITIMER_PROF, {child.CPU_SECONDS})\n"
        "try:\n"
        "    compiled.render({}, {})\n"
        "except RenderError as error:\n"
        "    sys.exit(error.text)\n"
    )
    ended = run_python(script, bomb)
    breached = ended.returncode in (-signal.SIGPROF, -signal.SIGABRT)
    assert breached or b"256 kB" in ended.stderr, ended


def test_control_the_endless_loop_needs_its_fuel() -> None:
    with pytest.raises(RenderError, match="too many steps"):
        CompiledTemplate(version(ENDLESS)).render({}, {})
    counted = "{% for a in range(2000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}done"
    with pytest.raises(RenderError, match="too many steps"):
        CompiledTemplate(version(counted)).render({}, {})
    assert CompiledTemplate(version(counted), fuel=None).render({}, {})[0]["body"] == "done"


async def test_one_of_500_whose_attributes_explode_fails_alone(rendering: ChildRenderer) -> None:
    people = crowd(500)
    people[377] = person(377, width=500_000_000)
    contents = await rendering.render(jobs(version(DATA_BOMB), people))
    assert_only_fails(contents, {377})
    assert contents[377] == RenderFailure("rendering took more than 250 ms of CPU time")


async def test_several_guilty_ones_are_all_found(rendering: ChildRenderer) -> None:
    guilty = {0, 1, 250, 499}
    people = [person(n, width=500_000_000 if n in guilty else 0) for n in range(500)]
    assert_only_fails(await rendering.render(jobs(version(DATA_BOMB), people)), guilty)


async def test_a_bomb_for_everyone_is_given_up_after_a_few(rendering: ChildRenderer) -> None:
    ended = count_ends(rendering)
    people = [person(number, width=500_000_000) for number in range(500)]
    contents = await rendering.render(jobs(version(DATA_BOMB), people))
    assert all(isinstance(content, RenderFailure) for content in contents)
    assert len(ended) == HOPELESS


def count_ends(rendering: ChildRenderer) -> list[int]:
    """The children of the quarantine that ended; the list grows."""
    ended: list[int] = []
    cell = rendering._quarantine.cell
    clear = cell.clear

    async def counted_clear() -> None:
        if cell.child is not None:
            ended.append(cell.child.pid)
        await clear()

    cell.clear = counted_clear  # type: ignore[method-assign]
    return ended


async def test_a_version_found_guilty_no_longer_disturbs_the_first_child(rendering: ChildRenderer) -> None:
    bomb = version(DATA_BOMB, row=7)
    await rendering.render(jobs(bomb, [person(0, width=500_000_000)]))
    await rendering.render(jobs(version(GREETING, row=8), crowd(1)))
    first = rendering.pids()[0]
    assert_only_fails(await rendering.render(jobs(bomb, [person(0, width=500_000_000), person(1, width=0)])), {0})
    assert rendering.pids()[0] == first
    assert_only_fails(await rendering.render(jobs(bomb, crowd(3))), set())
    assert not rendering._quarantine._suspects


async def test_checking_a_bomb_is_safe_and_leaves_the_first_child_alone(rendering: ChildRenderer) -> None:
    before = rendering.pids()
    for bomb in GENTLE + VIOLENT:
        await rendering.check(version(bomb))
    assert rendering.pids()[: len(before)] == before


async def test_memory_of_the_children_stays_bounded(rendering: ChildRenderer) -> None:
    peaks: list[int] = []
    for bomb in (*VIOLENT, DOUBLINGS):
        task = asyncio.create_task(rendering.render(jobs(version(bomb), [person(1)])))
        while not task.done():
            peaks += [size for pid in rendering.pids() if (size := virtual_size(pid))]
            await asyncio.sleep(0.002)
        assert isinstance((await task)[0], RenderFailure)
    assert 0 < max(peaks) <= child.MEMORY
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 <= 2 * child.MEMORY


def virtual_size(pid: int) -> int:
    """Bytes; 0 when the process has just ended."""
    status = proc_file(pid, "status").splitlines()
    return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmSize")), 0)


async def test_a_child_killed_in_the_middle_of_a_chunk_costs_nobody_anything(rendering: ChildRenderer) -> None:
    (pid,) = rendering.pids()
    os.kill(pid, signal.SIGSTOP)
    call = asyncio.create_task(rendering.render(jobs(version(GREETING), crowd(500))))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert_only_fails(await call, set())


async def test_a_child_killed_while_it_waits_costs_nobody_anything(rendering: ChildRenderer) -> None:
    (pid,) = rendering.pids()
    os.kill(pid, signal.SIGKILL)
    assert_only_fails(await rendering.render(jobs(version(GREETING), crowd(20))), set())


async def test_a_child_that_gives_no_answer_is_replaced() -> None:
    rendering = ChildRenderer(deadline=timedelta(seconds=0.3))
    await rendering.start()
    (pid,) = rendering.pids()
    os.kill(pid, signal.SIGSTOP)
    assert_only_fails(await rendering.render(jobs(version(GREETING), crowd(20))), set())
    await rendering.stop()


async def test_other_renders_go_on_while_a_chunk_is_in_quarantine() -> None:
    rendering = ChildRenderer(deadline=timedelta(seconds=30))
    await rendering.start()
    people = [person(0, width=500_000_000), *crowd(3)[1:]]
    first_child = rendering.pids()[0]
    bomb = asyncio.create_task(rendering.render(jobs(version(DATA_BOMB), people)))
    await until(lambda: rendering._quarantine.cell.child is not None)
    quarantine = rendering.pids()[-1]
    os.kill(quarantine, signal.SIGSTOP)
    for number in range(20):
        assert_only_fails(await rendering.render(jobs(version(GREETING, row=9), crowd(number + 1))), set())
    assert not bomb.done()
    assert first_child not in rendering.pids()
    os.kill(quarantine, signal.SIGCONT)
    assert_only_fails(await bomb, {0})
    await rendering.stop()


async def test_the_quarantine_ends_its_child_when_nothing_comes() -> None:
    rendering = ChildRenderer(quarantine_idle=timedelta(seconds=0.05))
    await rendering.start()
    assert await rendering.check(version(GREETING)) is None
    await until(lambda: len(rendering.pids()) == 1)
    assert await rendering.check(version(GREETING)) is None
    await rendering.stop()


async def test_many_slow_recipients_are_no_breach(rendering: ChildRenderer) -> None:
    """Each takes some 20 ms, all together longer than the deadline: the child answers in parts."""
    before = rendering.pids()
    contents = await rendering.render(jobs(version(SLOW), crowd(120)))
    assert_only_fails(contents, set())
    assert rendering.pids() == before


async def test_the_child_ends_with_its_parent() -> None:
    script = (
        "import asyncio, os\n"
        "from noroshi.machine.rendering.renderer import ChildRenderer\n"
        "async def main():\n"
        "    rendering = ChildRenderer()\n"
        "    await rendering.start()\n"
        "    print(rendering.pids()[0], flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    pid = int((await asyncio.to_thread(run_python, script)).stdout)
    await until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    return proc_file(pid, "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


async def test_the_child_has_neither_our_environment_nor_files(rendering: ChildRenderer) -> None:
    (pid,) = rendering.pids()
    environment = proc_file(pid, "environ").split("\0")
    assert [entry.partition("=")[0] for entry in environment if entry] == ["PYTHONPATH"]
    limits = proc_file(pid, "limits")
    for line in ("Max core file size", "Max open files", "Max file size"):
        assert next(one for one in limits.splitlines() if one.startswith(line)).split()[-3:-1] == ["0", "0"]


ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ user.__class__ }}",
    "{{ user['__class__'] }}",
    "{{ user|attr('__class__') }}",
    "{{ user.attributes.__init__.__globals__ }}",
    "{{ user.attributes.tags.__len__ }}",
    "{{ user.attributes.tags.append }}",
    "{{ user.attributes.tags.append('x') }}",
    "{{ user.get }}",
    "{{ user.get('name') }}",
    "{{ user['ge' ~ 't'] }}",
    "{{ user.items() }}",
    "{{ user.keys }}",
    "{{ user.attributes.copy() }}",
    "{{ [user]|map(attribute='get')|list }}",
    "{{ [user]|map(attribute='ge' ~ 't')|list }}",
    "{{ [user]|map(**{'attribut' ~ 'e': 'get'})|list }}",
    "{{ [user]|map('attr', 'get')|list }}",
    "{{ [user]|groupby('get') }}",
    "{{ [user]|sort(attribute='get') }}",
    "{{ [user]|sum(attribute='get') }}",
    "{{ [user]|selectattr('get')|list }}",
    "{{ [user]|rejectattr('get')|list }}",
    "{{ [user]|unique(attribute='get')|list }}",
    "{{ [[user]]|map('group' ~ 'by', 'get')|list }}",
    "{{ get }}",
    "{{ items }}",
    "{{ pop('user') }}",
    "{{ update }}",
    "{{ fromkeys('ab') }}",
    "{{ _hidden_get }}",
    "{{ self }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ namespace(a=user).a.get }}",
    "{{ dict.__subclasses__() }}",
    "{{ dict(user).get }}",
    "{{ range.__class__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ lipsum(n=1000000) }}",
    "{{ request.application.__globals__ }}",
    "{{ config }}",
    "{{ debug() }}",
    "{{ environment }}",
    "{{ loop }}",
    "{% for x in user %}{{ loop.__class__ }}{{ loop.get }}{% endfor %}",
    "{{ '{0.__class__}'.format(user) }}",
    "{{ '{0.__class__}'|format(user) }}",
    "{{ '%(__class__)s'|format(user) }}",
    "{{ 'abc'.join(user) }}",
    "{{ 'x'.encode() }}",
    "{{ 1.5.hex() }}",
    "{{ (1).to_bytes(8) }}",
    "{{ true.real }}",
    "{{ user.name.upper() }}",
    "{{ user.name.format_map(user) }}",
    "{{ user() }}",
    "{{ user.attributes.tags() }}",
    "{% include '/etc/passwd' %}",
    "{% include '0.txt' %}",
    "{% import 'os' as os %}{{ os }}",
    "{% from 'os' import popen %}{{ popen }}",
    "{% extends '/etc/passwd' %}",
    "{% macro m() %}{{ caller }}{% endmacro %}{{ m.__globals__ }}",
    "{% macro m() %}{{ m }}{% endmacro %}{{ m() }}",
    "{% set get = user.get %}{{ get }}",
    "{% if false %}{% set get = 1 %}{% endif %}{{ get }}",
    "{% with %}{{ values }}{% endwith %}",
    "{{ user|pprint }}",
    "{{ user|tojson|safe }}",
    "{{ user.attributes|items|list }}",
]
PYTHON_SHOWS = ("<built-in", "<bound", "<class", "<module", "<function", " object at 0x", "dict_", "root:")


async def test_no_escape_reaches_python_or_a_file(rendering: ChildRenderer) -> None:  # N2.6
    """Refused, failed or harmless text; each is rendered even if it would be refused."""
    tagged = person(1, tags=["a"])
    all_jobs = [job for row, source in enumerate(ESCAPES) for job in jobs(version(source, row), [tagged])]
    for source, content in zip(ESCAPES, await rendering.render(all_jobs), strict=True):
        shown = content.body if isinstance(content, Content) else content.error
        assert not any(sign in shown for sign in PYTHON_SHOWS), (source, shown)
    assert len(rendering.pids()) == 1


def test_control_values_that_are_not_sealed_do_show_python() -> None:
    plain = CompiledTemplate(version("{{ user.name }}"))
    plain._environment.add_template("0.txt", "{{ user.get }}")
    assert "<built-in method get" in plain.render({}, {"name": "x"})[0]["body"]
