"""Reservations on the command line: due jobs sent, as cron does it every minute, and a day of a shop as a play."""

import asyncio
import os
from typing import Annotated

import msgspec
import typer

from noroshi.bootstrap.back import Back
from noroshi.bootstrap.opening import set_up_logs
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.problems import ProblemError
from noroshi.domain.shop import SendReport
from noroshi.entrypoints.cli.options import CANNOT, DataOption
from noroshi.entrypoints.cli.shop_play import play_day
from noroshi.entrypoints.cli.starting import with_back
from noroshi.settings import SettingsError

DRY_RUN = "NOTIFICATION_CRON_DRY_RUN"
LIMIT = "NOTIFICATION_CRON_LIMIT"
MOST_JOBS = 1_000

_WORDS = {"true": True, "false": False}

app = typer.Typer(no_args_is_help=True, help="Reservations: what customers are told over LINE.")
cron = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def is_dry_by_environment() -> bool:
    """A word that is neither is an error: this is what keeps a rehearsal from being the real thing."""
    word = os.environ.get(DRY_RUN, "false").strip().lower()
    if word not in _WORDS:
        raise SettingsError(f"{DRY_RUN} must be true or false (it is {word!r})")
    return _WORDS[word]


@app.command("send-pending")
@cron.command()
def send_pending(
    limit: Annotated[int, typer.Option(min=1, max=MOST_JOBS, envvar=LIMIT, help="The most jobs of one run.")] = 50,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=f"Call nothing, change nothing, show what is due ({DRY_RUN}=true).")
    ] = False,
    data: DataOption = None,
) -> None:
    """Send the jobs that are due; say nothing unless something was sent or failed."""

    set_up_logs("warning", "console")

    async def work(back: Back) -> SendReport:
        is_dry = dry_run or is_dry_by_environment()
        return await back.shop.send_pending_jobs(DEFAULT_TENANT, limit, is_dry=is_dry)

    try:
        report = with_back(data, work)
    except ProblemError as problem:
        typer.echo(f"noroshi: {problem.detail}", err=True)
        raise typer.Exit(CANNOT) from problem
    summary = report.summary
    if summary.sent or summary.failed or summary.dry_run:
        typer.echo(msgspec.json.encode(report).decode())


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=0, max=3600, help="How long the day takes.")] = 60,
) -> None:
    """Play a day of a shop: what is paid, cancelled and due, and what arrives on whose phone."""
    set_up_logs("error", "console")
    asyncio.run(play_day(seconds))
