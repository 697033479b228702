"""The source tree as these tests see it: files, modules and their syntax."""

import ast
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "noroshi"


class Module(NamedTuple):
    """`name` without the leading `noroshi.`; of the package itself it is empty."""

    path: Path
    name: str
    syntax: ast.Module

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the product."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found.append(Module(path, name, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


def python_files() -> list[Path]:
    """Ours, tests and benchmarks included."""
    return [path for folder in ("src", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]


def tracked_files() -> list[Path]:
    """What a clone would hold."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
