"""Both renderers, in process and by a child, held to the same port."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from noroshi.domain.deliveries import Recipient
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.machine.rendering import workshop
from noroshi.machine.rendering.inline import InlineRenderer
from noroshi.machine.rendering.process import ChildProcess, ChildStartError
from noroshi.machine.rendering.renderer import ChildRenderer, RendererStoppedError
from noroshi.ports.renderer import Renderer, RenderJob

ORDER = TemplateVersion(
    row=1,
    template_id="order",
    channel="email",
    locale="ja",
    variant="",
    version=1,
    subject="Order {{ order_id }}",
    title=None,
    body="Hello {{ user.name }}",
    metadata={"html_body": "<p>{{ user.name }}</p>", "data": {"url": "/o/{{ order_id }}", "n": 1}},
)


def person(number: int, **attributes: Any) -> Recipient:
    return Recipient(f"u{number}", f"<{number}>", "ja", "Asia/Tokyo", attributes)


def jobs(count: int, template: TemplateVersion = ORDER, **data: Any) -> list[RenderJob]:
    return [RenderJob(template, {"order_id": "A-1"} | data, person(number)) for number in range(count)]


@pytest.fixture(params=["inline", "child"])
async def renderer(request: pytest.FixtureRequest) -> AsyncIterator[Renderer]:
    if request.param == "inline":
        yield InlineRenderer()
        return
    child = ChildRenderer()
    await child.start()
    yield child
    await child.stop()


async def test_contents_come_in_the_order_of_the_jobs(renderer: Renderer) -> None:
    contents = await renderer.render(jobs(1200))
    assert contents[7] == Content(
        body="Hello <7>",
        subject="Order A-1",
        metadata={"html_body": "<p>&lt;7&gt;</p>", "data": {"url": "/o/A-1", "n": 1}},
    )
    assert [content.body for content in contents if isinstance(content, Content)] == [
        f"Hello <{number}>" for number in range(1200)
    ]


async def test_a_failure_stays_with_its_recipient(renderer: Renderer) -> None:  # N2.5
    template = msgspec.structs.replace(ORDER, row=2, body="{{ user.attributes.plan }}")
    data = {"order_id": "A-1"}
    with_plan, without = person(1, plan="gold"), person(2)
    odd = person(3, plan="\ud800")
    contents = await renderer.render([RenderJob(template, data, one) for one in (without, with_plan, odd)])
    assert contents[0] == RenderFailure("body, line 1: an undefined value (`user.attributes.plan`)")
    assert isinstance(contents[1], Content)
    assert isinstance(contents[2], RenderFailure)


async def test_a_version_that_does_not_compile_fails_its_own_recipients(renderer: Renderer) -> None:
    broken = msgspec.structs.replace(ORDER, row=3, body="{{ ")
    contents = await renderer.render([*jobs(2, broken), *jobs(2)])
    assert [type(content) for content in contents] == [RenderFailure, RenderFailure, Content, Content]


async def test_the_same_row_with_another_text_is_another_template(renderer: Renderer) -> None:
    for word in ("one", "two", "one"):
        (content,) = await renderer.render(jobs(1, msgspec.structs.replace(ORDER, body=word)))
        assert isinstance(content, Content)
        assert content.body == word


async def test_more_versions_than_a_child_keeps(renderer: Renderer) -> None:
    many = [msgspec.structs.replace(ORDER, row=row, body=f"{row} {{{{ user.name }}}}") for row in range(600)]
    for _ in range(2):
        contents = await renderer.render([job for one in many for job in jobs(1, one)])
        assert [c.body for c in contents if isinstance(c, Content)] == [f"{row} <0>" for row in range(600)]


async def test_much_output_comes_in_several_answers(renderer: Renderer) -> None:
    template = msgspec.structs.replace(ORDER, row=4, body="{{ text }}{{ user.name }}")
    assert 2 * workshop.MAX_ANSWER < 100 * 200_000
    contents = await renderer.render(jobs(100, template, text="x" * 200_000))
    assert [c.body[200_000:] for c in contents if isinstance(c, Content)] == [f"<{n}>" for n in range(100)]


async def test_an_answer_may_stop_after_any_recipient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop, "MAX_SECONDS", 0.0)
    contents = await InlineRenderer().render(jobs(30))
    assert [content.body for content in contents if isinstance(content, Content)] == [f"Hello <{n}>" for n in range(30)]


async def test_the_person_is_all_of_the_person_that_is_seen(renderer: Renderer) -> None:  # N2.7
    template = msgspec.structs.replace(ORDER, body="{{ user|list|sort|join(' ') }}", metadata={})
    (content,) = await renderer.render(jobs(1, template))
    assert content == Content("attributes locale name timezone", subject="Order A-1")


async def test_check_names_the_fault(renderer: Renderer) -> None:
    assert await renderer.check(ORDER) is None
    refused = msgspec.structs.replace(ORDER, subject="{{ x|format }}")
    assert await renderer.check(refused) == "subject, line 1: the filter `format` is not allowed"
    assert await renderer.check(msgspec.structs.replace(ORDER, body="\ud800")) is not None
    assert await renderer.check(msgspec.structs.replace(ORDER, metadata={"data": {"wei": 10**30}})) is None


async def test_no_jobs_no_contents(renderer: Renderer) -> None:
    assert await renderer.render([]) == []


async def test_many_calls_at_once_each_get_their_own(renderer: Renderer) -> None:
    calls = [renderer.render(jobs(1 + number * 7, order_id=f"B-{number}")) for number in range(40)]
    for number, contents in enumerate(await asyncio.gather(*calls)):
        assert {content.subject for content in contents if isinstance(content, Content)} == {f"Order B-{number}"}
        assert len(contents) == 1 + number * 7


async def test_a_cancelled_call_does_not_disturb_the_others() -> None:
    renderer = ChildRenderer()
    await renderer.start()
    cancelled = [asyncio.create_task(renderer.render(jobs(700, order_id="gone"))) for _ in range(5)]
    kept = [asyncio.create_task(renderer.render(jobs(700, order_id=f"C-{n}"))) for n in range(5)]
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    for number, contents in enumerate(await asyncio.gather(*kept)):
        assert {content.subject for content in contents if isinstance(content, Content)} == {f"Order C-{number}"}
    await renderer.stop()
    assert all(task.cancelled() for task in cancelled)


async def test_stopping_leaves_nobody_waiting() -> None:
    renderer = ChildRenderer()
    with pytest.raises(RendererStoppedError):
        await renderer.render(jobs(1))
    await renderer.start()
    waiting = [asyncio.create_task(renderer.render(jobs(500))) for _ in range(4)]
    checking = asyncio.create_task(renderer.check(ORDER))
    await asyncio.sleep(0)
    await renderer.stop()
    ends = await asyncio.gather(*waiting, checking, return_exceptions=True)
    assert [type(end) for end in ends] == [RendererStoppedError] * 5
    assert renderer.pids() == []


async def test_a_child_that_cannot_start_is_nobodys_render_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = ChildRenderer()

    async def no_start() -> ChildProcess:
        raise ChildStartError("no more processes")

    await renderer.start()
    await renderer._cell.clear()
    monkeypatch.setattr(ChildProcess, "start", no_start)
    with pytest.raises(ChildStartError):
        await renderer.render(jobs(3))
    monkeypatch.undo()
    assert all(isinstance(content, Content) for content in await renderer.render(jobs(3)))
    await renderer.stop()
