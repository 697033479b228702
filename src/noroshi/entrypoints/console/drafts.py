"""Drafts: a template's form as a browser sent it in, the fields of a template version and sample data out."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from minijinja import Environment, TemplateError

from noroshi.client.answers import TemplateVersion
from noroshi.entrypoints.console.refusals import refusal

RICH = ("html_body", "text_body", "subtitle", "image_url")
"""What of the metadata has a field of its own in the form."""

_TEXTS = ("subject", "title")
_LISTS = re.compile(r"\bin\s+([A-Za-z_]\w*)")
_NOT_DATA = frozenset({"user", "loop"})


def read_draft(form: dict[str, str]) -> dict[str, Any]:
    """All that the API wants for a version, or for the preview of one."""
    rich: dict[str, Any] = {name: form[name] for name in RICH if form.get(name)}
    return {
        "channel": form.get("channel", ""),
        "locale": form.get("locale", ""),
        "variant": form.get("variant", ""),
        "body": form.get("body", ""),
        **{name: form[name] for name in _TEXTS if form.get(name)},
        "metadata": {**read_object(form.get("other", ""), "metadata"), **rich},
    }


def read_object(text: str, field: str) -> dict[str, Any]:
    """A JSON object that a person wrote; nothing is an empty one."""
    if not text.strip():
        return {}
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        todo = 'Write {"name": "value"}; check quotes and commas.'
        raise refusal(422, "bad_json", "This is not a JSON object.", todo, detail=f"{error}.", field=field) from None
    return found


def other_metadata(version: TemplateVersion) -> str:
    left = {name: value for name, value in version.metadata.items() if name not in RICH}
    return _pretty(left) if left else ""


def sample_data(version: TemplateVersion) -> str:
    """An object with everything that the version asks for, to be changed by hand."""
    source = "\n".join(_strings([version.subject, version.title, version.body, version.metadata]))
    try:
        names = Environment().undeclared_variables_in_str(source, nested=True)
    except TemplateError:
        names = set()
    lists = set(_LISTS.findall(source))
    sample: dict[str, Any] = {}
    for name in sorted(names):
        if name.split(".")[0] not in _NOT_DATA:
            _put(sample, name.split("."), [] if name in lists else f"‹{name.split('.')[-1]}›")
    return _pretty(sample)


def _put(into: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = into.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        into = inner
    into.setdefault(path[-1], value)


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from _strings(inner)


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
