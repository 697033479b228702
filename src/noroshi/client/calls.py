"""Calls: a method, a path and what goes with them in; the answer as a struct, or a NoroshiError, out."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from noroshi.client.answers import Page
from noroshi.client.errors import error_of
from noroshi.client.transports import Call, Transport

T = TypeVar("T")

_FAILED = 400


def place(*parts: str | int) -> str:
    """A path of the API; each part may hold anything, a slash included."""
    return "/api/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given: None means left out."""
    return {name: value for name, value in fields.items() if value is not None}


async def each(page: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    """Every item of a list, page after page: `each(lambda cursor: noroshi.users(cursor=cursor))`."""
    cursor: str | None = None
    while True:
        found = await page(cursor)
        for item in found.items:
            yield item
        if found.next_cursor is None:
            return
        cursor = found.next_cursor


class Caller:
    """Speaks the API's language over a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def _get(self, kind: type[T], path: str, **query: Any) -> T:
        return await self._call("GET", kind, path, query=given(**query))

    async def _post(self, kind: type[T], path: str, body: Any = None, headers: dict[str, str] | None = None) -> T:
        return await self._call("POST", kind, path, body, headers=headers)

    async def _put(self, kind: type[T], path: str, body: Any) -> T:
        return await self._call("PUT", kind, path, body)

    async def _delete(self, path: str) -> None:
        await self._call("DELETE", type(None), path)

    async def _call(
        self,
        method: str,
        kind: type[T],
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> T:
        raw = b"" if body is None else msgspec.json.encode(body)
        answer = await self._carry(Call(method, path, urlencode(query or {}), raw, headers or {}))
        return msgspec.json.decode(answer or b"null", type=kind)

    async def _carry(self, call: Call) -> bytes:
        reply = await self._transport.carry(call)
        if reply.status >= _FAILED:
            raise error_of(reply.status, reply.headers, reply.body)
        return reply.body
