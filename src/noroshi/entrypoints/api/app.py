"""The API as an ASGI application: a desk in, an application that serves the route table out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.calls import Row
from noroshi.entrypoints.api.connections import AnswerWhole
from noroshi.entrypoints.api.desk import Desk, Gatekeeper
from noroshi.entrypoints.api.routes import ACCEPT, ROUTES
from noroshi.entrypoints.api.serving import PathServer, RequestIds, RowServer, refuse
from noroshi.entrypoints.api.streams import SOCKET, server_of
from noroshi.entrypoints.shop_pages.door import is_page, load_pages

_SERVED = frozenset({"http", "websocket"})


class Api:
    """`whole`: what a connection may serve without ASGI between, by the path as it stands in the request."""

    def __init__(self, app: ASGIApp, whole: Mapping[bytes, AnswerWhole]) -> None:
        self._app = app
        self.whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def build_app(desk: Desk, rows: Iterable[Row] = ROUTES, gate: Gatekeeper | None = None) -> Api:
    """Whoever calls passes the desk's gate, unless another is given."""
    request_ids = RequestIds(desk.clock)
    gate = gate or desk.gate
    by_path: dict[str, list[RowServer]] = defaultdict(list)
    for row in rows:
        by_path[row.path].append(server_of(row, desk, request_ids, gate))
    accept = next((one for servers in by_path.values() for one in servers if one.row is ACCEPT), None)

    @cache
    def pages() -> ASGIApp:
        return load_pages(desk)

    async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        elif accept is not None and is_page(scope["path"]):
            await pages()(scope, receive, send)
        else:
            problem = ProblemError("not_found", "No route has this path; /openapi.json lists them.")
            await refuse(problem, request_ids.next(), send)

    paths = [Route(path, PathServer(servers, request_ids, desk.origins)) for path, servers in by_path.items()]
    sockets = [
        WebSocketRoute(one.row.path, one) for servers in by_path.values() for one in servers if one.row.media == SOCKET
    ]
    router = Router([*paths, *sockets], default=nowhere, redirect_slashes=False)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in _SERVED:
            if scope["path"] == ACCEPT.path and scope.get("method") == ACCEPT.method and accept is not None:
                await accept(scope, receive, send)
                return
            raw_path: bytes = scope.get("raw_path") or b""
            if b"%" in raw_path:
                # Routed as it was sent, so that an id may hold a slash; each part is decoded on its own afterwards.
                scope = {**scope, "path": raw_path.decode("ascii", "replace")}
        await router(scope, receive, send)

    return Api(app, {} if accept is None else {ACCEPT.path.encode(): accept.answer_whole})
