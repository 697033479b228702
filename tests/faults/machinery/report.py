"""The published report: each layer writes its section to build/faults, and this pastes them into docs/faults.md.

`python -m tests.faults.machinery.report` after a run; sections that were not run stay as they were.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECTIONS = ROOT / "build" / "faults"
REPORT = ROOT / "docs" / "faults.md"


def section(name: str, store: str) -> str:
    """Each store has a place of its own for what was found on it."""
    return name if store == "sqlite" else f"{name}-{store}"


def publish(name: str, text: str, folder: Path = SECTIONS) -> None:
    """Keeps what a layer found, for the report; a later run replaces it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text.strip() + "\n")


def paste(report: str, sections: dict[str, str]) -> str:
    """The report with each section between its marks; a section without marks is an error."""
    for name, text in sections.items():
        start, end = _place(report, name)
        report = f"{report[:start]}{text.strip()}\n{report[end:]}"
    return report


def standing(report: str, name: str) -> str:
    """What a section would replace."""
    start, end = _place(report, name)
    return report[start:end]


def _place(report: str, name: str) -> tuple[int, int]:
    place = re.search(rf"(?<=<!-- {re.escape(name)} -->\n).*?(?=<!-- end -->)", report, re.DOTALL)
    if place is None:
        raise ValueError(f"the report has no place for {name}")
    return place.span()


def main() -> None:
    sections = {path.stem: path.read_text() for path in sorted(SECTIONS.glob("*.md"))}
    REPORT.write_text(paste(REPORT.read_text(), sections))
    print(f"pasted into {REPORT.relative_to(ROOT)}: {', '.join(sections) or 'nothing'}")


if __name__ == "__main__":
    main()
