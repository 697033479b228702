"""`noroshi version`."""

import typer

from noroshi import __version__


def version() -> None:
    """Print the version."""
    typer.echo(__version__)
