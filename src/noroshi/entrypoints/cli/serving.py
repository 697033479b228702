"""Serving: settings in, a server until it is told to stop, its exit code out.

The order is what keeps promises: the port is taken, the parts start, only then does it listen; at the end it stops
listening, answers what it has, and only then do the parts stop.
"""

import asyncio
import resource
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from noroshi import __version__
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import Opening, made_ready, needs_postgres, set_up_logs
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.connections import Connection, Socket
from noroshi.entrypoints.cli.lazy import load
from noroshi.entrypoints.cli.supervising import Seat, supervise
from noroshi.entrypoints.cli.watching import QuietServer, taken_port, watched
from noroshi.entrypoints.console.door import with_console
from noroshi.settings import Settings, SettingsError

BROKEN = 3
"""The exit code after the disk failed under a commit: whoever watches over the server should look."""

_DEMONSTRATE = "noroshi.entrypoints.cli.demonstration.demonstrating:demonstrate"
"""Imported on first use: a server in service does not carry it."""

_GRACE_SECONDS = 10
_LONGEST_MESSAGE = 4_096
"""Nobody has anything to say to a socket of ours."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class _Server(QuietServer):
    def __init__(
        self, config: uvicorn.Config, announce: Callable[[], Awaitable[None]], end_streams: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._end_streams = end_streams
        self.is_broken = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        await self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams would never end by themselves."""
        self._end_streams()
        await super().shutdown(sockets=sockets)

    def stop(self) -> None:
        """uvicorn looks at this ten times a second."""
        self.should_exit = True

    def stop_broken(self) -> None:
        """The disk has failed, or whoever keeps the store is gone."""
        self.is_broken = self.should_exit = True


def serve(settings: Settings, *, is_dev: bool, processes: int = 1, metrics_port: int | None = None) -> int:
    """With several processes, each returns here with its own code: the children, and at last their parent."""
    if is_dev and settings.host not in _LOOPBACK and not settings.unsafe:
        raise SettingsError(
            f"--dev on {settings.host} shows an API key to others: add --unsafe (NOROSHI_UNSAFE=on) if that is meant"
        )
    if processes > 1 and not settings.is_on_postgres:
        raise SettingsError(needs_postgres("--workers above 1"))
    set_up_logs(settings.log_level, settings.log_format)
    _allow_many_connections()
    with made_ready(settings) as open_noroshi, taken_port(settings.host, settings.port) as listener:

        def serve_alone(seat: Seat | None = None) -> int:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(_serve(settings, open_noroshi, listener, metrics_port, seat, is_dev=is_dev))

        return serve_alone() if processes == 1 else supervise(processes, serve_alone, listener.close)


async def _serve(
    settings: Settings,
    open_noroshi: Opening,
    listener: socket.socket,
    metrics_port: int | None,
    seat: Seat | None,
    *,
    is_dev: bool,
) -> int:
    server: _Server

    def on_broken() -> None:
        server.stop_broken()

    noroshi = open_noroshi(is_dev=is_dev, on_broken=on_broken)
    announce = partial(_announce, settings, noroshi, listener.getsockname()[1], seat, is_dev=is_dev)
    api = build_app(noroshi)
    app = with_console(api, noroshi, public_url=settings.public_url, is_closing=lambda: server.should_exit)
    connection = Connection.to(api.whole, settings.receive_within)
    server = _Server(_uvicorn_config(settings, app, connection, noroshi.most_streams), announce, noroshi.end_streams)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    if seat is not None:
        seat.watch_parent(server.stop)
        metrics_port = None if metrics_port is None else metrics_port + seat.number
    async with watched(noroshi, settings.host, metrics_port):
        await noroshi.start()
        try:
            await server.serve(sockets=[listener])
        finally:
            await noroshi.stop()
    structlog.get_logger().info("stopped", code="broken" if server.is_broken else "asked")
    return BROKEN if server.is_broken else 0


async def _announce(settings: Settings, noroshi: Noroshi, port: int, seat: Seat | None, *, is_dev: bool) -> None:
    """Said once it listens: what is printed can be used at once. Of several processes the first says it for all."""
    log = structlog.get_logger()
    number = 0 if seat is None else seat.number
    log.info("serving", version=__version__, host=settings.host, port=port, data=str(settings.data), number=number)
    if seat is None or (seat.number == 0 and seat.is_new):
        for name, why in noroshi.roll_call().items():
            log.info("off", provider=name, reason=why)
        for note in noroshi.notes():
            log.warning(note)
        if is_dev:
            url = settings.public_url if settings.port else f"http://{settings.host}:{port}"
            await load(_DEMONSTRATE)(noroshi, settings.data, url)
    if seat is not None:
        seat.report_ready()


def _uvicorn_config(
    settings: Settings, app: ASGIApp, connection: type[Connection], most_streams: int
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=connection,
        ws=Socket,
        ws_max_size=_LONGEST_MESSAGE,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        # The last wall: long before it our own valves answer 503 with Retry-After. Idle connections and streams count.
        limit_concurrency=settings.max_waiting_calls * 2 + most_streams,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _allow_many_connections() -> None:
    """Many systems allow a process 1,024 files unless it asks for what it may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
