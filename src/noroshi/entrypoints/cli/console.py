"""The console on the command line: a link that opens it once."""

import typer

from noroshi.bootstrap.back import Back
from noroshi.entrypoints.cli.options import DataOption, gathered_settings
from noroshi.entrypoints.cli.remembered import recall
from noroshi.entrypoints.cli.starting import one_line_errors, with_back


def console(data: DataOption = None) -> None:
    """Print a link that opens the console once, within a quarter of an hour."""

    async def work(back: Back) -> str:
        return await back.write_ticket()

    with one_line_errors():
        settings = gathered_settings(data=data)
    shown = recall(settings.data)  # what `serve --dev` left: it may listen on another port
    url = settings.public_url if shown is None else shown.url
    typer.echo(f"{url}/console/enter?ticket={with_back(data, work)}")
