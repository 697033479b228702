"""API keys on the command line: minted (and shown once), listed, revoked."""

from datetime import timedelta
from typing import Annotated

import msgspec
import typer

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import iso
from noroshi.domain.records import ApiKey, KeyScope
from noroshi.entrypoints.cli.lazy import load
from noroshi.entrypoints.cli.options import CANNOT, DataOption, JsonOption
from noroshi.entrypoints.cli.starting import with_back

_CELL = 16
"""Characters of a value that the table shows: of a time, the day and the minute."""

app = typer.Typer(no_args_is_help=True, help="API keys.")


def _read_scopes(text: str) -> list[KeyScope]:
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words or not set(words) <= set(KeyScope):
        raise typer.BadParameter(f"scopes are {', '.join(KeyScope)}, separated by commas")
    return [KeyScope(word) for word in words]


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Who will use it.")],
    scopes: Annotated[str, typer.Option(help="send, read, admin; several separated by commas.")],
    per_minute: Annotated[
        int | None, typer.Option(min=1, help="Calls allowed a minute; unlimited if left out.")
    ] = None,
    expires_in: Annotated[int | None, typer.Option(min=1, help="Days until it expires; never if left out.")] = None,
    data: DataOption = None,
) -> None:
    """Make a key and print it, alone, this once."""
    wanted = _read_scopes(scopes)
    lifetime = None if expires_in is None else timedelta(days=expires_in)
    typer.echo(with_back(data, lambda back: back.mint_key(name, wanted, per_minute, lifetime)))


@app.command("list")
def list_keys(
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Show every key, without its secret."""
    rows = [_shown(key) for key in with_back(data, lambda back: back.store.keys.list_keys(DEFAULT_TENANT))]
    if json:
        typer.echo(msgspec.json.encode(rows).decode())
        return
    # Loaded for this table alone: most who come here want a key made.
    table = load("rich.table:Table")(
        "key_id", "name", "scopes", "per minute", "created", "expires", "revoked", box=None
    )
    for row in rows:
        table.add_row(*("" if value is None else str(value)[:_CELL] for value in row.values()))
    load("rich.console:Console")().print(table)


@app.command()
def revoke(key_id: Annotated[str, typer.Argument(help="As `keys list` shows it.")], data: DataOption = None) -> None:
    """End a key; calls with it are refused from then on."""
    if not with_back(data, lambda back: back.store.keys.revoke(DEFAULT_TENANT, key_id)):
        typer.echo(f"noroshi: there is no live key {key_id}", err=True)
        raise typer.Exit(CANNOT)


def _shown(key: ApiKey) -> dict[str, str | int | None]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": ",".join(key.scopes),
        "per_minute": key.per_minute,
        "created_at": iso(key.created_at),
        "expires_at": None if key.expires_at is None else iso(key.expires_at),
        "revoked_at": None if key.revoked_at is None else iso(key.revoked_at),
    }
