"""The docs as a site: pages as they lie in the repository in; build/site out, or what is wrong with them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT

WITH_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs", "examples", "deploy")
"""What the site is made from, at the paths of the repository: so a link that works on the forge works here."""

NAVIGATION: dict[str, str | tuple[str, ...]] = {
    "Tour": "README.md",
    "How to": (
        "docs/how-to/send-from-python.md",
        "docs/how-to/send-from-a-shell.md",
        "docs/how-to/enqueue.md",
    ),
    "Channels": ("docs/channels/*.md",),
    "Console": "docs/console.md",
    "Command line": "docs/command-line.md",
    "Reservations": ("docs/reservations.md", "docs/reservations.ja.md"),
    "In service": ("docs/deployment.md", "docs/operations.md"),
    "Reference": (
        "docs/glossary.md",
        "docs/routes.md",
        "docs/settings.md",
        "docs/errors.md",
        "docs/states.md",
        "docs/metrics.md",
    ),
    "How it works": (
        "docs/data-flow.md",
        "docs/faults.md",
        "docs/benchmarks.md",
        "docs/testing.md",
        "docs/dependencies.md",
        "docs/roadmap.md",
    ),
    "Decisions": ("docs/decisions/README.md", "docs/decisions/[0-9]*.md"),
    "Taking part": ("CONTRIBUTING.md", "CHANGELOG.md"),
}
"""Heading and its pages, in order; a pattern stands for every page that it finds."""

EXTENSIONS = {
    "attr_list": {},
    "tables": {},
    "toc": {"permalink": True},
    "pymdownx.highlight": {},
    "pymdownx.superfences": {},
}
PALETTE = [
    {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "black", "accent": "deep orange"},
    {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "black", "accent": "deep orange"},
]


class SiteError(Exception):
    """The pages do not make a site; the text says which and why."""


def build_site(root: Path, work: Path) -> Path:
    """Answers the folder of the site. Nothing is fetched, neither now nor by whoever reads it."""
    pages, site, recipe = work / "pages", work / "site", work / "site.yml"
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
    for name in WITH_PAGES:
        _copy(root / name, pages / name)
    recipe.write_text(json.dumps(_recipe(pages)), encoding="utf-8")  # JSON is YAML, too
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(recipe)]
    ran = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SiteError(ran.stdout + ran.stderr)
    return site


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _recipe(pages: Path) -> dict[str, object]:
    return {
        "site_name": "Noroshi",
        "site_description": "One API through which a product reaches people on every channel.",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,  # so that the site can be read from a disk
        "nav": list(_navigation(pages)),
        "theme": {"font": False, "palette": PALETTE, "features": ["navigation.sections", "content.code.copy"]},
        "markdown_extensions": [{name: options} for name, options in EXTENSIONS.items()],
    }


def _navigation(pages: Path) -> Iterator[dict[str, str | list[str]]]:
    """Every page has its place, and every place its page."""
    placed: list[str] = []
    for heading, patterns in NAVIGATION.items():
        found = [page for one in _several(patterns) for page in _matching(pages, one)]
        placed += found
        yield {heading: found[0] if isinstance(patterns, str) else found}
    lost = {str(page.relative_to(pages)) for page in pages.rglob("*.md")} - set(placed)
    if lost:
        raise SiteError(f"not in NAVIGATION of tests/architecture/site.py: {', '.join(sorted(lost))}")


def _several(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _matching(pages: Path, pattern: str) -> list[str]:
    found = sorted(str(page.relative_to(pages)) for page in pages.glob(pattern))
    if not found:
        raise SiteError(f"NAVIGATION of tests/architecture/site.py names {pattern}, and there is no such page")
    return found


if __name__ == "__main__":
    work = ROOT / "build"
    work.mkdir(exist_ok=True)
    try:
        print(build_site(ROOT, work) / "index.html")
    except SiteError as error:
        sys.exit(str(error))
