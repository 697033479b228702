"""`noroshi migrate`: a store in, the store at the current schema out."""

import typer

from noroshi.bootstrap.back import Back
from noroshi.entrypoints.cli.options import DataOption
from noroshi.entrypoints.cli.starting import with_back


def migrate(data: DataOption = None) -> None:
    """Bring the store to the current schema."""

    async def work(back: Back) -> int:
        return back.schema

    typer.echo(f"schema {with_back(data, work)}")
