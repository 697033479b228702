"""Reading: an ASGI request in, what the browser asked out, or a refusal of what no browser of ours would send."""

from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.types import Receive, Scope

from noroshi.client import NoroshiError
from noroshi.entrypoints.console.calls import Asked
from noroshi.entrypoints.console.refusals import foreign, refusal

_LARGEST_FORM = 512 * 1024
_FIELDS_AT_MOST = 50
_FORM = "application/x-www-form-urlencoded"


def raw_path(scope: Scope) -> str:
    """As it was sent: an id may hold a slash."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.split(b"?")[0].decode("ascii", "replace")


async def read_asked(scope: Scope, receive: Receive, parts: dict[str, str]) -> Asked:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope["query_string"].decode("ascii", "replace")
    path = raw_path(scope)
    return Asked(
        method=scope["method"],
        here=f"{path}?{query}" if query else path,
        path={name: unquote(part) for name, part in parts.items()},
        query=_pairs(query),
        form=await _read_form(headers, receive) if scope["method"] == "POST" else {},
        cookies=_cookies(headers.get("cookie", "")),
        headers=headers,
    )


def check_origin(asked: Asked, public_url: str) -> None:
    """A form counts only if a page of ours sent it: browsers say who did, and others cannot make them lie."""
    origin = asked.headers.get("origin")
    ours = {_host(public_url), asked.headers.get("host", "")}
    is_ours = origin is not None and _host(origin) in ours
    if not is_ours or asked.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise foreign()


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _pairs(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_AT_MOST))
    except ValueError:
        raise _unreadable() from None


def _cookies(text: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(text).items()}
    except CookieError:
        return {}


async def _read_form(headers: dict[str, str], receive: Receive) -> dict[str, str]:
    if headers.get("content-type", "").split(";")[0] != _FORM:
        raise _unreadable()
    parts: list[bytes] = []
    size = 0
    has_more = True
    while has_more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        has_more = message.get("more_body", False)
        if size > _LARGEST_FORM:
            raise refusal(413, "too_large", f"The form is over {_LARGEST_FORM // 1024} kB.", "Send less at once.")
    return _without_returns(_pairs(b"".join(parts).decode("ascii", "replace")).items())


def _without_returns(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Browsers send CRLF for every line break in a text area."""
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


def _unreadable() -> NoroshiError:
    return refusal(400, "bad_form", "This cannot be read.", "Open the page again and repeat what you did.")
