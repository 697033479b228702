"""Watching: a running Noroshi in, a small server for probes and metrics beside it out."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import uvicorn

from noroshi.bootstrap.noroshi import Noroshi
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.connections import Connection
from noroshi.entrypoints.api.routes import HEALTH_ROUTES
from noroshi.settings import SettingsError

_GRACE_SECONDS = 2


class QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: uvicorn would raise the signal again when it is done, and end us before our parts have stopped."""
        yield


@contextmanager
def taken_port(host: str, port: int) -> Iterator[socket.socket]:
    """Bound but not listening yet, so that a port in use is known before anything starts."""
    with ExitStack() as stack:
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        yield listener


@asynccontextmanager
async def watched(noroshi: Noroshi, host: str, port: int | None) -> AsyncIterator[None]:
    """Answers /healthz, /readyz and /metrics on a port of its own for as long as the block lasts; None: nothing."""
    if port is None:
        yield
        return
    config = uvicorn.Config(
        build_app(noroshi, HEALTH_ROUTES),
        http=Connection.to({}),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = QuietServer(config)
    with taken_port(host, port) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving
