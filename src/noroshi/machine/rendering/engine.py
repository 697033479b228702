"""One template version with data and a person goes in; rendered content, or a RenderError, comes out.

A template sees the keys of the data at its top level and the person under `user` (N2.7). Nothing else: each version
has an environment of its own, without loader, with the names of `allowed` alone.
"""

from typing import Any, NamedTuple

from minijinja import Environment, TemplateError

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering.allowed import REFUSED_FILTERS, REFUSED_FUNCTIONS, REFUSED_TESTS
from noroshi.machine.rendering.scan import find_fault
from noroshi.machine.rendering.sealed import may_name_a_method, seal, visible, with_hidden_names, words_of

FUEL = 1_000_000
"""Steps one part may take: some 40 ms of loops. What runs long in a single step is bounded by the child."""

MAX_SOURCE = 64 * 1024
MAX_OUTPUT = 256 * 1024
_LONGEST_QUOTE = 60

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


class Rendered(NamedTuple):
    """`content` has the fields of Content; `size` is in bytes."""

    content: dict[str, Any]
    size: int


class CompiledTemplate:
    """A version ready to render. Raises RenderError if it does not compile."""

    def __init__(self, version: TemplateVersion, fuel: int | None = FUEL) -> None:
        self._environment = _new_environment(fuel)
        self._slots: list[_Slot] = []
        fields = {"subject": version.subject, "title": version.title, "body": version.body}
        tree = {name: self._compile(text, name) for name, text in fields.items() if text is not None}
        if version.metadata:
            tree["metadata"] = self._compile(version.metadata, "metadata")
        self._tree = tree
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
        """What every recipient of the same data sees: to be made once and given to `render` again and again."""
        seen = visible(data, self._words)
        return {name: seal(value) for name, value in seen.items()} if self._is_sealed else seen

    def render(self, context: dict[str, Any], person: dict[str, Any]) -> Rendered:
        """The content for one person, whose fields are those of N2.7. `context` is changed: it gets the person."""
        context["user"] = seal(person) if self._is_sealed else person
        texts: list[str] = []
        content = self._fill(self._tree, context, texts)
        size = sum(map(len, texts))
        if size * 4 > MAX_OUTPUT:
            size = sum(len(text.encode()) for text in texts)
        if size > MAX_OUTPUT:
            raise RenderError(f"more than {MAX_OUTPUT // 1024} kB came out")
        return Rendered(content, size)

    def _fill(self, node: Any, context: dict[str, Any], texts: list[str]) -> Any:
        kind = type(node)
        if kind is _Slot:
            texts.append(text := self._render_slot(node, context))
            return text
        if kind is dict:
            return {key: self._fill(inner, context, texts) for key, inner in node.items()}
        if kind is list:
            return [self._fill(inner, context, texts) for inner in node]
        if kind is str:
            texts.append(node)
        return node

    def _render_slot(self, slot: _Slot, context: dict[str, Any]) -> str:
        try:
            return self._environment.render_template(slot.name, **context)
        except TemplateError as error:
            raise RenderError(_explain(slot, error)) from None
        except Exception as error:  # noqa: BLE001 - a template can make Python raise anything; its text may hold values
            raise RenderError(f"{slot.place}: cannot be rendered ({type(error).__name__})") from None


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
    quote = ""
    if error.range is not None:
        first, last = error.range
        piece = slot.source.encode()[first:last].decode(errors="replace")
        quote = f" (`{piece[:_LONGEST_QUOTE]}`)"
    return f"{slot.place}, line {error.line or 1}: {problem}{quote}"
