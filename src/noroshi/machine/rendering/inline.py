"""Render jobs in, contents out, in this very process: for the seeded simulator, where nothing may depend on the
machine's own timing. What the child's process bounds (memory, CPU time) is not bounded here."""

from collections.abc import Sequence
from typing import NamedTuple

from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.machine.rendering.engine import check_template
from noroshi.machine.rendering.orders import UNREADABLE, OrderBook, encoded
from noroshi.machine.rendering.protocol import Order, decode_answer, decode_order, decode_version, encode
from noroshi.machine.rendering.workshop import Workshop
from noroshi.ports.renderer import RenderJob


class _Item(NamedTuple):
    job: RenderJob
    place: int


def _no_timer() -> None:
    return


class InlineRenderer:
    """Goes through orders and answers as the child does, so that the contents are the same."""

    def __init__(self) -> None:
        self._workshop = Workshop(before_each=_no_timer)
        self._book = OrderBook()

    async def render(self, jobs: Sequence[RenderJob]) -> list[Content | RenderFailure]:
        results: list[Content | RenderFailure] = [RenderFailure(UNREADABLE)] * len(jobs)
        left = [_Item(job, place) for place, job in enumerate(jobs)]
        while left:
            written = self._book.write(left)
            done = self._results(written.order)
            for item, result in zip(written.items, done, strict=False):
                results[item.place] = RenderFailure(result) if isinstance(result, str) else result
            left = written.items[len(done) :] + written.left
        return results

    def _results(self, order: Order) -> list[Content | str]:
        answers = self._workshop.answers(decode_order(encode(order)))
        return [result for answer in answers for result in decode_answer(encode(answer)).results]

    async def check(self, template: TemplateVersion) -> str | None:
        lesson = encoded(template)
        return UNREADABLE if lesson is None else check_template(decode_version(lesson))
