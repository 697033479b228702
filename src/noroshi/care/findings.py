"""Findings: what an examination says of one thing, and what to do about it."""

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(Struct, frozen=True):
    """`text` is what was seen, `advice` what to do; neither ever shows a password, a key or an address."""

    subject: str
    level: Level
    text: str
    advice: str = ""


def fine(subject: str, text: str) -> Finding:
    return Finding(subject, Level.OK, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    return Finding(subject, Level.WARNING, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    return Finding(subject, Level.PROBLEM, text, advice)
