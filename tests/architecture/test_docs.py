"""The docs say what the code does (DESIGN 3, STYLE 22)."""

import re
import subprocess

import pytest

from noroshi.domain.channels import CHANNELS
from noroshi.domain.states import TRANSITIONS, Status
from noroshi.flow.send.registry import PROVIDERS
from tests.architecture.tables import DOCS, MADE, pages_of_channels, pages_of_providers, written
from tests.architecture.tree import ROOT, tracked_files

PLACES_OF_A_MACHINE = re.compile(
    r"(?<![\w.~])/(?:root|home|work|Users|opt|mnt|private)/\w"
    r"|--(?:extra-)?index-url|--trusted-host [\w.]|--find-links|pypi\.org/simple|pythonhosted\.org|artifactory|nexus/"
)


@pytest.mark.parametrize("page", MADE)
def test_a_table_of_the_docs_is_the_one_in_the_code(page: str) -> None:
    assert written(DOCS / page) == MADE[page](), "make docs"


def test_every_provider_has_a_page_with_its_settings() -> None:
    assert pages_of_providers().keys() == PROVIDERS.keys()


def test_every_channel_has_a_page_of_its_own_or_that_of_a_provider() -> None:
    served = {place.removeprefix("noroshi.flow.send.").split(".")[0] for place in PROVIDERS.values()}
    assert served & CHANNELS.keys() | pages_of_channels().keys() == CHANNELS.keys()


def test_the_schema_that_the_docs_show_is_the_current_one() -> None:
    shown = re.findall(r"\bschema +(\d+)", (DOCS / "operations.md").read_text(encoding="utf-8"))
    migrations = ROOT / "src" / "noroshi" / "storage" / "sqlite" / "migrations"
    assert len(shown) == 2
    assert {int(number) for number in shown} == {len(list(migrations.glob("*.sql")))}


def test_the_drawing_of_the_states_shows_every_transition_and_no_other() -> None:
    # N5.4
    [drawing] = re.findall(r"```mermaid\n(.*?)```", (DOCS / "states.md").read_text(), re.DOTALL)
    drawn = {(Status[before], Status[after]) for before, after in re.findall(r"([A-Z_]+) --> ([A-Z_]+)", drawing)}
    assert drawn == {(before, after) for before, afters in TRANSITIONS.items() for after in afters}


def test_every_link_between_the_docs_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_decision_states_its_question_choice_and_price() -> None:
    decisions = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Question", "Choice", "Price"], page.name


def test_no_file_names_a_place_of_one_machine_or_where_packages_come_from() -> None:
    own = {"test_docs.py", "Makefile"}  # which name the options that keep such lines out
    for path in tracked_files():
        if path.name in own:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        found = PLACES_OF_A_MACHINE.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found[0]}"


def test_nothing_is_tracked_that_is_made_anew() -> None:
    listed = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""
