"""`noroshi users`: people listed, shown, registered and erased."""

from typing import Annotated, Any

import typer
from msgspec import Struct, structs

from noroshi.client import Noroshi, NoroshiError
from noroshi.client.answers import Device, Preferences, User
from noroshi.client.calls import each
from noroshi.entrypoints.cli.connecting import ask, confirm, first
from noroshi.entrypoints.cli.options import FolderOption, JsonOption, LimitOption, YesOption
from noroshi.entrypoints.cli.reading import read_data
from noroshi.entrypoints.cli.showing import console, print_facts, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="People who can be told things.")

UserArgument = Annotated[str, typer.Argument(help="The person's id.", metavar="USER")]


class Portrait(Struct, frozen=True):
    user: User
    preferences: Preferences
    devices: list[Device]


@app.command("list")
def list_users(
    prefix: Annotated[str | None, typer.Option(help="Only ids that begin so.")] = None,
    limit: LimitOption = 50,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show people, without their addresses."""
    found = ask(
        folder,
        lambda noroshi: first(limit, lambda cursor, count: noroshi.users(prefix=prefix, cursor=cursor, limit=count)),
    )
    if json:
        print_json(found)
        return
    rows = [(one.user_id, one.name, one.locale, one.timezone, one.reachable_by, one.updated_at) for one in found]
    columns = ("user", "name", "locale", "timezone", "reachable by", "changed")
    print_table(columns, rows, empty="Nobody is registered. `noroshi users put USER --email ...` registers somebody.")


@app.command()
def show(user: UserArgument, folder: FolderOption = None, json: JsonOption = False) -> None:
    """Show a person with addresses, devices and wishes."""

    async def work(noroshi: Noroshi) -> Portrait:
        found = await noroshi.user(user)
        devices = [one async for one in each(lambda cursor: noroshi.devices(user, cursor=cursor))]
        return Portrait(found, await noroshi.preferences(user), devices)

    portrait = ask(folder, work)
    if json:
        print_json(portrait)
    else:
        _print(portrait)


def _print(portrait: Portrait) -> None:
    facts = {**structs.asdict(portrait.user), **_wishes(portrait.preferences)}
    facts["devices"] = [device.platform for device in portrait.devices]
    print_facts({name.replace("_", " "): value for name, value in facts.items()})


def _wishes(wishes: Preferences) -> dict[str, Any]:
    quiet = wishes.quiet_hours
    own = {channel: f"{limit.per_hour}/hour {limit.per_day}/day" for channel, limit in wishes.frequency_limit.items()}
    return {
        "channels_off": [name for name, is_on in wishes.channels.items() if not is_on],
        "categories_off": [name for name, is_on in wishes.categories.items() if not is_on],
        "quiet_hours": f"{quiet.start} to {quiet.end}" if quiet.enabled else "none",
        "own_limits": own,
    }


@app.command()
def put(
    user: UserArgument,
    email: Annotated[str | None, typer.Option(help="Their address; '' takes it away.")] = None,
    phone: Annotated[str | None, typer.Option(help="Such as +819012345678; '' takes it away.")] = None,
    name: Annotated[str | None, typer.Option(help="As templates call them.")] = None,
    locale: Annotated[str | None, typer.Option(help="Such as ja or en-GB.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Such as Asia/Tokyo.")] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", help="name=text, name:=JSON, a JSON object or @file; may be given often."),
    ] = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Register a person, or change what is named of one; the rest stays."""
    named = {"email": email, "phone": phone, "name": name, "locale": locale, "timezone": timezone}

    async def work(noroshi: Noroshi) -> User:
        before = await _known(noroshi, user)
        fields: dict[str, Any] = {
            field: value if value is not None else getattr(before, field, None) for field, value in named.items()
        }
        attributes = (before.attributes if before is not None else {}) | read_data(attribute or ())
        return await noroshi.put_user(user, **{f: v or None for f, v in fields.items()}, attributes=attributes)

    put_down = ask(folder, work)
    if json:
        print_json(put_down)
    else:
        console().print(f"{user} is registered.", markup=False)


async def _known(noroshi: Noroshi, user_id: str) -> User | None:
    try:
        return await noroshi.user(user_id)
    except NoroshiError as error:
        if error.code != "not_found":
            raise
        return None


@app.command()
def remove(user: UserArgument, yes: YesOption = False, folder: FolderOption = None) -> None:
    """Erase a person for good; the history keeps the id only."""
    confirm(f"Erase {user}? Addresses, devices and wishes cannot be brought back.", is_sure=yes)
    ask(folder, lambda noroshi: noroshi.remove_user(user))
    console().print(f"{user} is erased.", markup=False)
