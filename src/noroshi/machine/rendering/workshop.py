"""An order goes in, answers come out: what the child does, without its process and limits."""

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from msgspec import Raw

from noroshi.machine.rendering.engine import CompiledTemplate, RenderError, check_template
from noroshi.machine.rendering.protocol import Answer, Group, Order, decode_any, decode_version

MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of content after which an answer is given and the rest left to the next order."""

MAX_SECONDS = 1.0
"""The same for time: well within the renderer's deadline, so that many slow recipients are not taken for a breach."""

Result = dict[str, Any] | str


class Workshop:
    """`before_each` is called before every recipient: there the child winds up its timer."""

    def __init__(self, before_each: Callable[[], object]) -> None:
        self._before_each = before_each
        self._lessons: dict[int, Raw] = {}
        self._compiled: dict[int, CompiledTemplate | RenderError] = {}

    def answers(self, order: Order) -> Iterator[Any]:
        """Encoded they read as Answers: one, or one for each recipient of a streamed order."""
        for version in order.checks:
            self._before_each()
            yield Answer(fault=check_template(decode_version(version)))
        for lesson in order.learn:
            self._lessons[lesson.number] = lesson.version.copy()
        if order.is_streamed:
            for result, _ in self._results(order.groups):
                yield ([result],)
        elif order.groups:
            yield (self._some_results(order.groups),)
        for number in order.forget:
            self._lessons.pop(number, None)
            self._compiled.pop(number, None)

    def _some_results(self, groups: list[Group]) -> list[Result]:
        results: list[Result] = []
        made = 0
        until = monotonic() + MAX_SECONDS
        for result, size in self._results(groups):
            results.append(result)
            made += size
            if made > MAX_ANSWER or monotonic() > until:
                break
        return results

    def _results(self, groups: list[Group]) -> Iterator[tuple[Result, int]]:
        """(result, bytes) of each recipient, rendered when it is asked for."""
        for group in groups:
            self._before_each()
            compiled = self._template(group.number)
            recipients = decode_any(group.recipients)
            if isinstance(compiled, RenderError):
                yield from ((compiled.text, 0) for _ in recipients)
                continue
            context = compiled.context(decode_any(group.data))
            for recipient in recipients:
                del recipient["user_id"]
                self._before_each()
                try:
                    yield compiled.render(context, recipient)
                except RenderError as error:
                    yield error.text, 0

    def _template(self, number: int) -> CompiledTemplate | RenderError:
        compiled = self._compiled.get(number)
        if compiled is None:
            try:
                compiled = CompiledTemplate(decode_version(self._lessons.pop(number)))
            except RenderError as error:
                compiled = error
            self._compiled[number] = compiled
        return compiled
