"""`noroshi doctor`: findings as a table or as JSON; exit code 1 if one of them is a problem."""

import asyncio
from collections import Counter

import typer
from rich.table import Table
from rich.text import Text

from noroshi.care.examination import examine
from noroshi.care.findings import Finding, Level
from noroshi.entrypoints.cli.options import FAILED, DataOption, JsonOption, gathered_settings
from noroshi.entrypoints.cli.showing import console, print_json
from noroshi.entrypoints.cli.starting import one_line_errors

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_SIGNS = {Level.OK: "✓", Level.WARNING: "!", Level.PROBLEM: "✗"}


def doctor(data: DataOption = None, json: JsonOption = False) -> None:
    """Look over versions, settings, keys, disk, clock and the store, and say what to do."""
    with one_line_errors():
        findings = asyncio.run(examine(gathered_settings(data=data)))
    if json:
        print_json(findings)
    else:
        _print(findings)
    if any(finding.level is Level.PROBLEM for finding in findings):
        raise typer.Exit(FAILED)


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        said = Text(finding.text, "dim" if finding.level is Level.OK else "")
        if finding.advice:
            said.append(f"\n-> {finding.advice}", "cyan")
        sign = Text(f"{_SIGNS[finding.level]} {finding.level}", _COLOURS[finding.level])
        table.add_row(sign, Text(finding.subject), said)
    console().print(table)
    counts = Counter(finding.level for finding in findings)
    console().print(f"problems: {counts[Level.PROBLEM]}, warnings: {counts[Level.WARNING]}, fine: {counts[Level.OK]}")
