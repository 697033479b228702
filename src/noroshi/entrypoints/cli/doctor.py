"""`noroshi doctor`: findings as a table or as JSON; exit code 1 if one of them is a problem."""

import asyncio

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from noroshi.care.examination import examine
from noroshi.care.findings import Finding, Level
from noroshi.entrypoints.cli.keeping import JsonOption
from noroshi.entrypoints.cli.starting import DataOption, gathered_settings, one_line_errors

FOUND_PROBLEMS = 1
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


def doctor(data: DataOption = None, json: JsonOption = False) -> None:
    """Look over versions, settings, keys, disk, clock and the store, and say what to do."""
    with one_line_errors():
        findings = asyncio.run(examine(gathered_settings(data=data)))
    if json:
        typer.echo(msgspec.json.encode(findings).decode())
    else:
        _print(findings)
    if any(finding.level is Level.PROBLEM for finding in findings):
        raise typer.Exit(FOUND_PROBLEMS)


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False)
    for finding in findings:
        said = f"{finding.text}\n-> {finding.advice}" if finding.advice else finding.text
        table.add_row(Text(finding.level, _COLOURS[finding.level]), Text(finding.subject), Text(said))
    Console().print(table)
