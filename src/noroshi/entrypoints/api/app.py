"""The API as an ASGI application: a desk in, an application that serves the route table out."""

from collections import defaultdict
from collections.abc import Iterable

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.calls import Row
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.routes import ACCEPT, ROUTES
from noroshi.entrypoints.api.serving import PathServer, RequestIds, RowServer, refuse


def build_app(desk: Desk, rows: Iterable[Row] = ROUTES) -> ASGIApp:
    request_ids = RequestIds(desk.clock)
    by_path: dict[str, list[RowServer]] = defaultdict(list)
    for row in rows:
        by_path[row.path].append(RowServer(row, desk, request_ids))
    accept = next((one for servers in by_path.values() for one in servers if one.row is ACCEPT), None)

    async def nowhere(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            problem = ProblemError("not_found", "No route has this path; /openapi.json lists them.")
            await refuse(problem, request_ids.next(), send)

    routes = [Route(path, PathServer(servers, request_ids)) for path, servers in by_path.items()]
    router = Router(routes, default=nowhere, redirect_slashes=False)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if scope["path"] == ACCEPT.path and scope["method"] == ACCEPT.method and accept is not None:
                await accept(scope, receive, send)
                return
            raw_path: bytes = scope.get("raw_path") or b""
            if b"%" in raw_path:
                # Routed as it was sent, so that an id may hold a slash; each part is decoded on its own afterwards.
                scope = {**scope, "path": raw_path.decode("ascii", "replace")}
        await router(scope, receive, send)

    return app
