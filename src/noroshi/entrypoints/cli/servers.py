"""`noroshi serve` and `worker`: what runs until it is stopped."""

from typing import Annotated

import typer

from noroshi.entrypoints.cli.options import DataOption, UnsafeOption, gathered_settings
from noroshi.entrypoints.cli.serving import serve as serve_until_stopped
from noroshi.entrypoints.cli.starting import one_line_errors
from noroshi.entrypoints.cli.working import read_role
from noroshi.entrypoints.cli.working import work as work_until_stopped

MetricsPort = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Answer /metrics, /healthz and /readyz here, too; process N on PORT + N."),
]


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on (NOROSHI_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on (NOROSHI_PORT).")] = None,
    data: DataOption = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="Catch every message; seed people, templates and a key to try it with.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that serve side by side on the port (PostgreSQL only).")
    ] = 1,
    metrics_port: MetricsPort = None,
    unsafe: UnsafeOption = False,
) -> None:
    """Serve the API and send what it accepts, until stopped."""
    with one_line_errors():
        settings = gathered_settings(host=host, port=port, data=data, is_unsafe=unsafe)
        raise typer.Exit(serve_until_stopped(settings, is_dev=dev, processes=workers, metrics_port=metrics_port))


def worker(
    channels: Annotated[str | None, typer.Option(help="Only these: email,push (left out: all).")] = None,
    priorities: Annotated[str | None, typer.Option(help="Only these: critical,high (left out: all).")] = None,
    data: DataOption = None,
    metrics_port: MetricsPort = None,
    unsafe: UnsafeOption = False,
) -> None:
    """Only send what servers have accepted, until stopped (PostgreSQL only)."""
    with one_line_errors():
        role = read_role(channels, priorities)
        settings = gathered_settings(data=data, is_unsafe=unsafe)
        raise typer.Exit(work_until_stopped(settings, role, metrics_port))
