"""Drawing: a template's name and what it shows in; an answer with the headers of every page out."""

from functools import cache
from importlib.resources import files
from typing import Any

from minijinja import Environment
from starlette.responses import Response

_FOLDER = "html"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    # The link of a reservation is its key: no other site is to see it.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}


def page(name: str, *, status: int = 200, headers: dict[str, str] | None = None, **shown: Any) -> Response:
    text = _environment().render_template(name, **shown)
    return Response(text, status, _HEADERS | (headers or {}), "text/html; charset=utf-8")


def redirect(to: str, headers: dict[str, str] | None = None) -> Response:
    """To a page that can be reloaded without doing anything again."""
    return Response(b"", 303, _HEADERS | {"Location": to} | (headers or {}))


def stylesheet() -> Response:
    return Response(_read("style.css"), 200, _HEADERS | {"Cache-Control": "max-age=3600"}, "text/css; charset=utf-8")


@cache
def _environment() -> Environment:
    """Everything that is shown is escaped; a name that a template misspells is an error."""
    environment = Environment(loader=_read, auto_escape_callback=lambda _name: "html", undefined_behavior="strict")
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(_FOLDER, name).read_text(encoding="utf-8")
