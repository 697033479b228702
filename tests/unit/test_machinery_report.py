"""The published report: sections find their places, and the published file has one for each that is written."""

import re
from pathlib import Path

import pytest
from tests.faults.machinery.report import REPORT, ROOT, paste, publish, standing

PAGE = "# Faults\n<!-- L1 -->\nold\n<!-- end -->\nbetween\n<!-- L3 -->\nold\n<!-- end -->\n"


def test_a_section_replaces_what_stood_between_its_marks() -> None:
    pasted = paste(PAGE, {"L1": "| new |\n"})
    assert pasted == PAGE.replace("old", "| new |", 1)
    assert paste(pasted, {"L1": "| new |"}) == pasted


def test_a_section_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="L9"):
        paste(PAGE, {"L9": "lost"})


def test_a_later_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    publish("L1", "first", tmp_path)
    publish("L1", "second", tmp_path)
    assert (tmp_path / "L1.md").read_text() == "second\n"


MARKS = re.findall(r"^<!-- (?!end )(\S+) -->$", REPORT.read_text(), re.MULTILINE)
REACHES_ON = re.compile(r"^(#|<!--)", re.MULTILINE)


@pytest.mark.parametrize("name", MARKS)
def test_every_section_of_the_published_report_ends_before_the_next_heading_and_the_next_mark(name: str) -> None:
    assert MARKS.count(name) == 1
    assert not REACHES_ON.search(standing(REPORT.read_text(), name))


def test_a_section_without_an_end_is_noticed() -> None:
    assert REACHES_ON.search(standing(PAGE.replace("<!-- end -->\nbetween", "### Between", 1), "L1"))


def test_the_published_report_has_a_place_for_every_section_that_a_test_writes() -> None:
    source = "".join(path.read_text() for path in sorted((ROOT / "tests" / "faults").glob("*.py")))
    by_store = re.findall(r'\bsection\(\s*"(\S+)", store', source)
    written = {*re.findall(r'\bpublish\(\s*"(\S+)",', source), *by_store, *(f"{name}-postgres" for name in by_store)}
    assert {"L1", "L2", "L3", "L4", "L5", "L2-postgres"} <= written
    assert written <= set(MARKS)
