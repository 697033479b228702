"""The oldest versions that are safe (RELIABILITY 5.4), and how those that are installed compare."""

import email.policy
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

import apsw

from noroshi.care.findings import Finding, fine, problem, warning

FLOORS: dict[str, str] = {
    "apsw": "3.51.3",
    "asyncpg": "0.30",
    "cryptography": "44",
    "h11": "0.16",
    "jinja2": "3.1.6",
    "msgspec": "0.19",
    "python-multipart": "0.0.27",
    "starlette": "0.49.1",
    "urllib3": "2.7.0",
    "uvicorn": "0.34",
}
"""Packages that are not installed need none. Looked over by hand at each release."""

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = "3.51.3"


def is_at_least(version: str, floor: str) -> bool:
    """By their numbers alone: 1.10 comes after 1.9, and 2.0rc1 counts as 2.0."""
    found, wanted = ([int(n) for n in re.findall(r"\d+", text)[:3]] for text in (version, floor))
    length = max(len(found), len(wanted))
    return found + [0] * (length - len(found)) >= wanted + [0] * (length - len(wanted))


def installed() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in FLOORS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def examine_versions() -> Iterator[Finding]:
    python = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        yield problem("Python", python, "use Python 3.11 or newer")
    else:
        # Where the standard library does not check headers that were built, our own check does.
        by = "the standard library" if hasattr(email.policy.Policy, "verify_generated_headers") else "our own check"
        yield fine("Python", f"{python}; mail headers are checked by {by}")
    library = apsw.sqlite_lib_version()
    if is_at_least(library, OLDEST_SQLITE):
        yield fine("SQLite library", library)
    else:
        yield problem("SQLite library", f"{library} can spoil a file", f"install apsw {OLDEST_SQLITE} or newer")
    found = installed()
    old = {name: version for name, version in found.items() if not is_at_least(version, FLOORS[name])}
    for name, version in old.items():
        yield warning(name, f"{version} has known faults", f"install {FLOORS[name]} or newer")
    if not old:
        yield fine("packages", ", ".join(f"{name} {version}" for name, version in sorted(found.items())))
