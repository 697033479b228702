"""`noroshi templates`: listed, shown, written, previewed and rolled back."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.panel import Panel
from rich.text import Text

from noroshi.client import Noroshi
from noroshi.client.answers import TemplateVersion, Version
from noroshi.client.calls import each
from noroshi.entrypoints.cli.connecting import ask, first
from noroshi.entrypoints.cli.options import FolderOption, JsonOption, LimitOption
from noroshi.entrypoints.cli.reading import read_data, read_text
from noroshi.entrypoints.cli.showing import console, print_json, print_table
from noroshi.entrypoints.cli.written import MALFORMED, Written, read_versions

app = typer.Typer(no_args_is_help=True, help="Texts with gaps, in versions.")

TemplateArgument = Annotated[str, typer.Argument(help="The template's id.", metavar="TEMPLATE")]
ChannelOption = Annotated[str, typer.Option("--channel", "-c", help="email, sms, push, ...")]
LocaleOption = Annotated[str, typer.Option("--locale", "-l", help="ja, en, en-GB, ...")]
VariantOption = Annotated[str, typer.Option(help="A variant, if it has some.")]


@app.command("list")
def list_templates(limit: LimitOption = 50, folder: FolderOption = None, json: JsonOption = False) -> None:
    """Show every template."""
    found = ask(
        folder,
        lambda noroshi: first(limit, lambda cursor, count: noroshi.templates(cursor=cursor, limit=count)),
    )
    if json:
        print_json(found)
        return
    rows = [(one.template_id, one.channels, one.locales, one.version, one.updated_at) for one in found]
    columns = ("template", "channels", "locales", "version", "changed")
    print_table(columns, rows, empty="There is no template. `noroshi templates put TEMPLATE FILE` writes one.")


@app.command()
def show(template: TemplateArgument, folder: FolderOption = None, json: JsonOption = False) -> None:
    """Show every version, and the text of those in use."""
    versions = ask(folder, lambda noroshi: _versions(noroshi, template))
    if json:
        print_json(versions)
        return
    in_use = _in_use(versions)
    rows = [
        (v.channel, v.locale, v.variant, v.version, "in use" if v in in_use else "", v.created_at, v.created_by)
        for v in versions
    ]
    print_table(("channel", "locale", "variant", "version", "", "written", "by"), rows, empty="")
    for version in in_use:
        _print_text(f"{version.channel} {version.locale} v{version.version}", version)


async def _versions(noroshi: Noroshi, template: str) -> list[TemplateVersion]:
    return [one async for one in each(lambda cursor: noroshi.template(template, cursor=cursor))]


def _in_use(versions: list[TemplateVersion]) -> list[TemplateVersion]:
    """The newest active one of each place: the list has the newest first."""
    found: dict[tuple[str, str, str], TemplateVersion] = {}
    for version in versions:
        if version.is_active:
            found.setdefault((version.channel, version.locale, version.variant), version)
    return list(found.values())


def _print_text(title: str, text: Any) -> None:
    lines = Text()
    for part in (text.subject, text.title):
        if part:
            lines.append(f"{part}\n", "bold")
    lines.append(text.body)
    console().print(Panel(lines, title=title, title_align="left", expand=False))


@app.command()
def put(
    template: TemplateArgument,
    file: Annotated[
        Path | None,
        typer.Argument(help="A TOML or JSON file with `version` tables: channel, locale, subject, title, body."),
    ] = None,
    channel: Annotated[str | None, typer.Option("--channel", "-c", help="Without FILE: email, sms, push, ...")] = None,
    locale: Annotated[str | None, typer.Option("--locale", "-l", help="Without FILE: ja, en, ...")] = None,
    body: Annotated[str | None, typer.Option(help="Without FILE: the text; @file reads it, @- from a pipe.")] = None,
    subject: Annotated[str | None, typer.Option(help="Of an e-mail.")] = None,
    title: Annotated[str | None, typer.Option(help="Of a push or in-app message.")] = None,
    html: Annotated[Path | None, typer.Option(help="The HTML of an e-mail.", dir_okay=False)] = None,
    variant: VariantOption = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Write new versions; they are used from now on."""
    if file is not None:
        written = _read_file(file)
    elif channel is None or locale is None or body is None:
        raise typer.BadParameter("name a FILE, or --channel, --locale and --body")
    else:
        text = read_text(Path(body[1:])) if body.startswith("@") else body
        metadata = {} if html is None else {"html_body": read_text(html)}
        written = [Written(channel, locale, text, subject, title, variant or None, metadata)]

    async def work(noroshi: Noroshi) -> list[Version]:
        return [await noroshi.add_template(template, **msgspec.structs.asdict(one)) for one in written]

    added = ask(folder, work)
    if json:
        print_json(added)
        return
    for one in added:
        console().print(f"{template} {one.channel} {one.locale}: version {one.version} is in use.", markup=False)


def _read_file(path: Path) -> list[Written]:
    text = read_text(path)
    try:
        return read_versions(text, is_json=path.suffix == ".json")
    except MALFORMED as error:
        raise typer.BadParameter(f"{path}: {error}") from error


@app.command()
def rollback(
    template: TemplateArgument,
    version: Annotated[int, typer.Argument(help="The version to go back to.", min=1)],
    channel: ChannelOption,
    locale: LocaleOption,
    variant: VariantOption = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Go back to an earlier version; later ones are switched off."""
    back = ask(folder, lambda noroshi: noroshi.roll_back_template(template, channel, locale, version, variant=variant))
    if json:
        print_json(back)
    else:
        console().print(f"{template} {channel} {locale}: version {back.version} is in use.", markup=False)


@app.command()
def preview(
    template: TemplateArgument,
    channel: ChannelOption,
    user: Annotated[str | None, typer.Option("--user", "-u", help="As this person would get it.")] = None,
    locale: Annotated[str | None, typer.Option("--locale", "-l", help="Left out: the person's own.")] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="name=text, name:=JSON, a JSON object or @file; may be given often."),
    ] = None,
    variant: VariantOption = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a person would get; nothing is sent."""
    given = read_data(fields or ())
    shown = ask(
        folder,
        lambda noroshi: noroshi.preview(
            template, channel, user_id=user, locale=locale, variant=variant or None, data=given
        ),
    )
    if json:
        print_json(shown)
    else:
        _print_text(f"{shown.channel} {shown.locale} v{shown.version}", shown)
