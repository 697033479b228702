"""One template version with data and a person goes in; rendered content, or a RenderError, comes out.

A template sees the keys of the data at its top level and the person under `user` (N2.7). Nothing else: each version
has an environment of its own, without loader, with the names of `allowed` alone.
"""

import re
from typing import Any, NamedTuple

from minijinja import Environment, TemplateError
from msgspec.msgpack import encode

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering.allowed import REFUSED_FILTERS, REFUSED_FUNCTIONS, REFUSED_TESTS
from noroshi.machine.rendering.scan import find_fault
from noroshi.machine.rendering.sealed import may_name_a_method, seal, visible, with_hidden_names, words_of

FUEL = 1_000_000
"""Steps one part may take: some 40 ms of loops. What runs long in a single step is bounded by the child."""

MAX_SOURCE = 64 * 1024
MAX_OUTPUT = 256 * 1024
_BYTES_OF_A_CHARACTER = 4
_LONGEST_QUOTE = 60
_END_OF_PATH = re.compile(r"[\w.]+\Z")

_PROBLEMS = {
    "UndefinedError": "an undefined value",
    "OutOfFuel": "too many steps",
    "UnknownFilter": "an unknown filter",
    "UnknownTest": "an unknown test",
    "UnknownFunction": "an unknown function",
    "UnknownMethod": "an unknown method",
    "TemplateNotFound": "another template, which cannot be used",
    "InvalidOperation": "an operation that is not possible",
    "SyntaxError": "a syntax error",
}


class RenderError(Exception):
    """`text` names the place in the template and the kind of trouble, never a value of the data."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Slot(NamedTuple):
    """A string of the version that has to be rendered. The environment escapes HTML by the ending of the name."""

    place: str
    name: str
    source: str


class CompiledTemplate:
    """A version ready to render. Raises RenderError if it does not compile."""

    def __init__(self, version: TemplateVersion, fuel: int | None = FUEL) -> None:
        self._environment = _new_environment(fuel)
        self._render_template = self._environment.render_template
        self._slots: list[_Slot] = []
        fields = {"subject": version.subject, "title": version.title, "body": version.body}
        compiled = {name: self._compile(text, name) for name, text in fields.items() if text is not None}
        self._fixed = {name: node for name, node in compiled.items() if not isinstance(node, _Slot)}
        self._moving = [(name, node) for name, node in compiled.items() if isinstance(node, _Slot)]
        slots_so_far = len(self._slots)
        self._metadata = self._compile(version.metadata, "metadata")
        self._has_moving_metadata = len(self._slots) > slots_so_far
        if self._metadata and not self._has_moving_metadata:
            self._fixed["metadata"] = self._metadata
        self._fixed_size = self._size = len(encode([self._fixed, version.metadata]))
        sources = "\n".join(slot.source for slot in self._slots)
        self._words = words_of(sources)
        self._is_sealed = may_name_a_method(sources)

    def _compile(self, node: Any, place: str, *, is_html: bool = False) -> Any:
        """The same structure with a slot for each string that has code in it."""
        if isinstance(node, dict):
            return {
                key: self._compile(inner, f"{place}.{key}", is_html=is_html or key.startswith("html"))
                for key, inner in node.items()
            }
        if isinstance(node, list):
            return [self._compile(inner, f"{place}[{n}]", is_html=is_html) for n, inner in enumerate(node)]
        if not isinstance(node, str):
            return node
        if "{" not in node:
            return node.removesuffix("\n")
        slot = _Slot(place, f"{len(self._slots)}.{'html' if is_html else 'txt'}", with_hidden_names(node))
        try:
            self._environment.add_template(slot.name, slot.source)
        except (TemplateError, ValueError) as error:
            raise RenderError(_explain_syntax(slot, error)) from None
        self._slots.append(slot)
        return slot

    def context(self, data: dict[str, Any]) -> dict[str, Any]:
        """What every recipient of the same data sees: made once, given to `render` for each of them."""
        seen = visible(data, self._words)
        return {name: seal(value) for name, value in seen.items()} if self._is_sealed else seen

    def render(self, context: dict[str, Any], person: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """The fields of Content for one person, whose own fields are those of N2.7, and the bytes they take at most.
        The context is changed: it gets the person."""
        context["user"] = seal(person) if self._is_sealed else person
        content = self._fixed.copy()
        self._size = self._fixed_size
        for field, slot in self._moving:
            content[field] = self._render_slot(slot, context)
        if self._has_moving_metadata:
            content["metadata"] = self._fill(self._metadata, context)
        if self._size > MAX_OUTPUT:
            self._size = len(encode(content))
            if self._size > MAX_OUTPUT:
                raise RenderError(f"more than {MAX_OUTPUT // 1024} kB came out")
        return content, self._size

    def _fill(self, node: Any, context: dict[str, Any]) -> Any:
        kind = type(node)
        if kind is _Slot:
            return self._render_slot(node, context)
        if kind is dict:
            return {key: self._fill(inner, context) for key, inner in node.items()}
        if kind is list:
            return [self._fill(inner, context) for inner in node]
        return node

    def _render_slot(self, slot: _Slot, context: dict[str, Any]) -> str:
        try:
            text = self._render_template(slot.name, **context)
        except TemplateError as error:
            raise RenderError(_explain(slot, error)) from None
        except Exception as error:  # noqa: BLE001 - a template can make Python raise anything; its text may hold values
            raise RenderError(f"{slot.place}: cannot be rendered ({type(error).__name__})") from None
        self._size += _BYTES_OF_A_CHARACTER * len(text)
        return text


def check_template(version: TemplateVersion) -> str | None:
    """Why the version may not be stored: the field, the line and what is wrong there; or None."""
    texts = list(_texts(version))
    try:
        size = sum(len(text.encode()) for _, text in texts)
    except UnicodeEncodeError:
        return "the text is not valid Unicode"
    if size > MAX_SOURCE:
        return f"the template has {size} bytes; at most {MAX_SOURCE} are allowed"
    try:
        CompiledTemplate(version)
    except RenderError as error:
        return error.text
    for place, text in texts:
        if fault := find_fault(text):
            return f"{place}, line {fault.line}: {fault.problem}"
    return None


def _texts(version: TemplateVersion) -> list[tuple[str, str]]:
    """(place, text) of every string of the version."""
    fields = {"subject": version.subject, "title": version.title, "body": version.body, "metadata": version.metadata}
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = list(fields.items())
    while waiting:
        place, node = waiting.pop(0)
        if isinstance(node, str):
            found.append((place, node))
        elif isinstance(node, dict):
            waiting.extend((f"{place}.{key}", inner) for key, inner in node.items())
        elif isinstance(node, list):
            waiting.extend((f"{place}[{n}]", inner) for n, inner in enumerate(node))
    return found


def _new_environment(fuel: int | None) -> Environment:
    environment = Environment(undefined_behavior="strict", debug=False, pycompat=False, fuel=fuel)
    for name in REFUSED_FILTERS:
        environment.remove_filter(name)
    for name in REFUSED_TESTS:
        environment.remove_test(name)
    for name in REFUSED_FUNCTIONS:
        environment.remove_global(name)
    return environment


def _explain_syntax(slot: _Slot, error: Exception) -> str:
    """The engine's own words: before it is rendered a template has met no value."""
    if not isinstance(error, TemplateError):
        return f"{slot.place}: the text is not valid Unicode"
    return f"{slot.place}, line {error.line or 1}: {error.detail or error.kind}"


def _explain(slot: _Slot, error: TemplateError) -> str:
    """Our words and a piece of the template: the engine's words may quote a value."""
    problem = _PROBLEMS.get(error.kind, "cannot be rendered")
    return f"{slot.place}, line {error.line or 1}: {problem} (`{_piece(slot.source, error.range)}`)"


def _piece(source: str, where: tuple[int, int] | None) -> str:
    """The expression at `where`, in bytes; minijinja may name only its last part (`.b.c` of `a.b.c`)."""
    first, last = where or (0, 0)
    raw = source.encode()
    start = _END_OF_PATH.search(raw[:first].decode(errors="replace"))
    piece = (start[0] if start else "") + raw[first:last].decode(errors="replace")
    return piece[:_LONGEST_QUOTE]
