"""The command line: words in, an exit code out (0 done, 1 failed, 2 cannot be done as asked)."""

from typing import Annotated

import typer

from noroshi import __version__
from noroshi.bootstrap import Back
from noroshi.entrypoints.cli import keeping, keys
from noroshi.entrypoints.cli.doctor import doctor
from noroshi.entrypoints.cli.serving import serve as serve_until_stopped
from noroshi.entrypoints.cli.starting import DataOption, gathered_settings, one_line_errors, with_back
from noroshi.entrypoints.cli.working import read_role
from noroshi.entrypoints.cli.working import work as work_until_stopped

# Typer's own tracebacks show the values of local variables, among them keys and addresses (I12).
app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Noroshi: see README."
)
app.add_typer(keys.app, name="keys")
for command in (keeping.backup, keeping.restore, keeping.move, doctor):
    app.command()(command)


MetricsPort = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Answer /metrics, /healthz and /readyz here, too; process N on PORT + N."),
]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on (NOROSHI_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on (NOROSHI_PORT).")] = None,
    data: DataOption = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="Catch every message; seed a person, a template and a key.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that serve side by side on the port (PostgreSQL only).")
    ] = 1,
    metrics_port: MetricsPort = None,
) -> None:
    """Serve the API and send what it accepts, until stopped."""
    with one_line_errors():
        settings = gathered_settings(host=host, port=port, data=data)
        raise typer.Exit(serve_until_stopped(settings, is_dev=dev, processes=workers, metrics_port=metrics_port))


@app.command()
def worker(
    channels: Annotated[str | None, typer.Option(help="Only these: email,push (left out: all).")] = None,
    priorities: Annotated[str | None, typer.Option(help="Only these: critical,high (left out: all).")] = None,
    data: DataOption = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Only send what servers have accepted, until stopped (PostgreSQL only)."""
    with one_line_errors():
        role = read_role(channels, priorities)
        raise typer.Exit(work_until_stopped(gathered_settings(data=data), role, metrics_port))


@app.command()
def migrate(data: DataOption = None) -> None:
    """Bring the store to the current schema."""

    async def work(back: Back) -> int:
        return back.schema

    typer.echo(f"schema {with_back(data, work)}")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


if __name__ == "__main__":
    app(prog_name="noroshi")
