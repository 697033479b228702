"""Every dependency is pinned with hashes, has a reason, and is new enough (RELIABILITY 5.4)."""

import re
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw
import pytest

from tests.architecture.tree import ROOT

REQUIREMENTS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

FLOORS = {
    "h11": "0.16.0",  # memory
    "jinja2": "3.1.6",  # sandbox escapes
    "python-multipart": "0.0.27",  # memory
    "starlette": "0.49.1",  # range headers
    "urllib3": "2.7.0",  # redirects
}
SQLITE_FLOOR = "3.51.3"  # the WAL-reset bug


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def wanted(name: str) -> list[str]:
    lines = (REQUIREMENTS / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def package(requirement: str) -> str:
    return re.split(r"[<>=!~\[ ]", requirement)[0]


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (REQUIREMENTS / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize(("name", "floor"), FLOORS.items())
def test_no_version_with_a_known_hole_is_pinned_or_installed(name: str, floor: str) -> None:
    # RELIABILITY 5.4
    found = [pins(lock)[name] for lock in ("run.lock", "test.lock") if name in pins(lock)]
    with suppress(PackageNotFoundError):
        found.append(version(name))
    assert all(numbers(one) >= numbers(floor) for one in found), found


def test_sqlite_has_no_wal_reset_bug() -> None:
    # RELIABILITY 5.4
    assert numbers(apsw.sqlite_lib_version()) >= numbers(SQLITE_FLOOR)


def test_the_project_asks_for_what_the_lock_was_made_from() -> None:
    assert sorted(PROJECT["dependencies"]) == sorted(wanted("run.in"))
    extras = {line for lines in PROJECT["optional-dependencies"].values() for line in lines}
    assert {line for line in extras if not line.startswith("noroshi[")} == set(wanted("test.in"))


@pytest.mark.parametrize("lock", ["run.lock", "test.lock"])
def test_a_lock_pins_everything_with_hashes_and_names_no_index(lock: str) -> None:
    text = (REQUIREMENTS / lock).read_text()
    assert not re.search(r"://|^-|@", text, re.MULTILINE)
    for block in re.split(r"\n(?=[\w])", text):
        assert re.match(r"[\w.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", block), block[:80]
    assert {package(line).lower() for line in wanted(lock.replace(".lock", ".in"))} <= pins(lock).keys()


def test_tests_run_with_the_versions_that_serve() -> None:
    assert pins("run.lock").items() <= pins("test.lock").items()


def test_every_dependency_has_a_reason() -> None:
    # DESIGN 6
    text = (ROOT / "docs" / "dependencies.md").read_text()
    reasons = dict(re.findall(r"^\| `([\w.-]+)` \| (.+) \|$", text, re.MULTILINE))
    needed = {package(line) for line in [*wanted("run.in"), *wanted("test.in")]}
    assert reasons.keys() == needed
    assert all(len(reason) > 10 for reason in reasons.values())


def test_what_is_installed_here_is_what_the_lock_says() -> None:
    if not (Path(apsw.__file__).is_relative_to(ROOT / ".venv")):
        pytest.skip("not the project's own .venv")
    for name, pinned in pins("run.lock").items():
        assert version(name) == pinned, name
