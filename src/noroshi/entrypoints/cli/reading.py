"""Reading: what a person typed for data and times in; plain values, or what to type instead, out."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import typer


def read_data(texts: Sequence[str]) -> dict[str, Any]:
    """`name=text`, `name:=JSON`, JSON objects and `@file` (a JSON object), the later ones over the earlier."""
    data: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            data |= _object(_content(Path(text[1:])), text)
        elif text.lstrip().startswith("{"):
            data |= _object(text.encode(), text)
        else:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise typer.BadParameter(f"{text!r} is none of name=text, name:=JSON, a JSON object, @file")
            data |= {name: value} if name[-1] != ":" else _object(f'{{"{name[:-1]}": {value}}}'.encode(), text)
    return data


def _object(raw: bytes, said: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"{said!r} is not JSON: {error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from error


def read_attachment(path: Path) -> dict[str, Any]:
    """A file as it goes with a request."""
    return {"filename": path.name, "content": _content(path)}


def read_text(path: Path) -> str:
    """The text of a file; `-` is standard input."""
    if str(path) == "-":
        return typer.get_text_stream("stdin").read()
    try:
        return _content(path).decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8") from error


def read_moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} takes a time such as 2026-03-02T09:00+09:00, not {text!r}") from error
    return moment.astimezone()


def read_lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]
