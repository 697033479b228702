"""B14: how many contents our engine renders in a CPU-second, divided by what sandboxed Jinja2 renders.

Both get the same templates and data, one after the other in turns (A-B-A-B), and must give the same text. Jinja2
is used as by a careful caller: compiled once, strict about missing names, HTML escaped.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from noroshi.domain.deliveries import Recipient
from noroshi.domain.templates import Content, TemplateVersion
from noroshi.machine.rendering.engine import CompiledTemplate
from noroshi.machine.rendering.renderer import CHUNK, ChildRenderer
from noroshi.ports.renderer import RenderJob

BAR = 4.0
AIM = 8.0

PAIRS = 7
CPU_SECONDS = 0.15
"""How long one measurement of a pair lasts."""

SHORT = "Hello {{ user.name }}, your order {{ order_id }} is on its way."
LIST = (
    "<h1>Thank you, {{ user.name }}</h1><ul>"
    "{% for item in items %}<li>{{ item.name }}: {{ item.price }} yen</li>{% endfor %}</ul>"
)
DATA: dict[str, Any] = {
    "order_id": "A-1234",
    "items": [{"name": f"Tea & cake <{number}>", "price": 100 * number} for number in range(10)],
}
PERSON: dict[str, Any] = {"name": "Hanako", "locale": "ja", "timezone": "Asia/Tokyo", "attributes": {"plan": "gold"}}


def _version(row: int, body: str, metadata: dict[str, Any]) -> TemplateVersion:
    return TemplateVersion(row, "bench", "email", "en", "", 1, None, None, body, metadata)


def _ours(version: TemplateVersion) -> Callable[[], dict[str, Any]]:
    compiled = CompiledTemplate(version)
    context = compiled.context(DATA)
    return lambda: compiled.render(context, PERSON)[0]


def _theirs(source: str, *, is_html: bool) -> Callable[[], str]:
    environment = SandboxedEnvironment(autoescape=is_html, undefined=StrictUndefined)
    template = environment.from_string(source)
    return lambda: template.render(**DATA, user=PERSON)


def _per_cpu_second(render: Callable[[], object]) -> float:
    count = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < CPU_SECONDS:
        for _ in range(200):
            render()
        count += 200
    return count / spent


def _compare(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> dict[str, Any]:
    """The median of the pairs' ratios: a neighbour that disturbs one pair does not decide."""
    rates = [(_per_cpu_second(ours), _per_cpu_second(theirs)) for _ in range(PAIRS)]
    ratio = median(ours_rate / theirs_rate for ours_rate, theirs_rate in rates)
    ours_rate, theirs_rate = (median(side) for side in zip(*rates, strict=True))
    detail = f"{ours_rate:,.0f} against {theirs_rate:,.0f} a CPU-second; bar {BAR:g}, aim {AIM:g}"
    return {"name": name, "ratio": round(ratio, 2), "detail": detail}


def _short_row() -> dict[str, Any]:
    ours, theirs = _ours(_version(1, SHORT, {})), _theirs(SHORT, is_html=False)
    assert ours()["body"] == theirs()
    return _compare("B14 short text, two variables", ours, theirs)


def _list_row() -> dict[str, Any]:
    ours, theirs = _ours(_version(2, "see the HTML", {"html_body": LIST})), _theirs(LIST, is_html=True)
    assert ours()["metadata"]["html_body"] == theirs()
    return _compare("B14 HTML list of ten", ours, theirs)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _through_the_child() -> dict[str, Any]:
    """Not part of the ratio: what the whole way costs, in both processes."""
    version = _version(1, SHORT, {})
    recipients = (
        Recipient(f"u{number}", f"Hanako {number}", "ja", "Asia/Tokyo", {"plan": "gold"}) for number in range(CHUNK)
    )
    jobs = [RenderJob(version, DATA, recipient) for recipient in recipients]
    renderer = ChildRenderer()
    await renderer.start()
    try:
        (pid,) = renderer.pids()
        contents = await renderer.render(jobs)
        child, parent, began = _cpu_of(pid), time.process_time(), time.perf_counter()
        rounds = 100
        for _ in range(rounds):
            contents = await renderer.render(jobs)
        count = rounds * len(jobs)
        child, parent = _cpu_of(pid) - child, time.process_time() - parent
        rate = count / (time.perf_counter() - began)
    finally:
        await renderer.stop()
    assert [content.body for content in contents if isinstance(content, Content)] == [
        f"Hello Hanako {number}, your order A-1234 is on its way." for number in range(CHUNK)
    ]
    micros = f"child {child / count * 1e6:.1f}, parent {parent / count * 1e6:.1f} microseconds of CPU a recipient"
    return {
        "name": "B14 short text through the child",
        "ratio": None,
        "detail": f"{rate:,.0f}/s by the clock; {micros}",
    }


def run() -> list[dict[str, Any]]:
    """Rows of name, ratio (None where there is nothing to compare with) and detail."""
    return [_short_row(), _list_row(), asyncio.run(_through_the_child())]


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
