"""Assets: the name of a file in `browser` in, what a browser loads out."""

from functools import cache
from importlib.resources import files

from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk

SCRIPT = "text/javascript; charset=utf-8"
PAGE = "text/html; charset=utf-8"

SHARED = (
    (b"cache-control", b"public, max-age=300"),
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)
"""A module may be loaded by pages of any site: it holds nothing but itself."""

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
GUARDED = ((b"content-security-policy", _POLICY), (b"referrer-policy", b"no-referrer"))


@cache
def _asset(name: str) -> bytes:
    return files(__package__).joinpath("browser", name).read_bytes()


async def show_inbox_script(_desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _asset("inbox.js")


async def show_inbox_look(_desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _asset("inbox-look.js")


async def show_inbox_demo(desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _in_development(desk, "inbox-demo.html")


async def show_inbox_demo_script(desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _in_development(desk, "inbox-demo.js")


def _in_development(desk: Desk, name: str) -> bytes:
    if not desk.is_dev:
        raise missing("page")
    return _asset(name)
