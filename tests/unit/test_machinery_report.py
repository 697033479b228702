"""The published report: sections find their places, and the published file has one for every layer."""

from pathlib import Path

import pytest
from tests.faults.machinery.report import REPORT, paste, publish

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


LAYERS = ["L1", "L1-mutants", "L2", "L3", "L4", "L5"]
SCENARIOS = ["full", "poison", "sweeper", "providers", "input", "schemathesis"]


@pytest.mark.parametrize("section", [*LAYERS, *SCENARIOS])
def test_the_published_report_has_a_place_for_every_layer(section: str) -> None:
    assert "kept here" in paste(REPORT.read_text(), {section: "kept here"})
