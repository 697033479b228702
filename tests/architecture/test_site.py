"""The docs are a site, too: every page has its place, and every link and picture is there (issue 4)."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.architecture.site import WITH_PAGES, SiteError, build_site
from tests.architecture.tree import ROOT

FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""What a browser asks for by itself, and the attribute that says where."""

NOT_UNDERSTOOD = re.compile(r"<p>[^<]*\n(?:[-*] |\d+\. |\|[ -])")
"""A list or a table that a forge shows and the site takes for text: it needs an empty line before it."""


class Fetches(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(FETCHED.get(tag, ""))
        if address and dict(attrs).get("rel") != "canonical":
            self.addresses.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(ROOT, tmp_path_factory.mktemp("site"))


def pages_of(site: Path) -> list[Path]:
    return sorted(page for page in site.rglob("*.html") if page.name != "404.html")


def test_the_docs_build_into_a_site_with_every_page(site: Path) -> None:
    assert (site / "index.html").exists()
    written = {page.stem for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"}
    assert written <= {page.stem for page in pages_of(site)}


def test_whoever_reads_the_site_asks_no_other_server_for_anything(site: Path) -> None:
    for page in pages_of(site):
        fetches = Fetches()
        fetches.feed(page.read_text(encoding="utf-8"))
        for address in fetches.addresses:
            assert not re.match(r"(https?:)?//", address), f"{page.name} fetches {address}"
            assert (page.parent / address.partition("?")[0]).exists(), f"{page.name} lacks {address}"


def test_lists_and_tables_are_drawn_and_not_shown_as_text(site: Path) -> None:
    for page in pages_of(site):
        found = NOT_UNDERSTOOD.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.name}: {found[0]}"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in WITH_PAGES:
        source, target = ROOT / name, tmp_path / "repository" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    return tmp_path / "repository"


@pytest.mark.parametrize("link", ["no-such-page.md", "errors.md#no-such-heading"])
def test_a_link_that_leads_nowhere_stops_the_build(copied: Path, link: str) -> None:
    page = copied / "docs" / "console.md"
    page.write_text(page.read_text(encoding="utf-8") + f"\n[nowhere]({link})\n", encoding="utf-8")
    with pytest.raises(SiteError, match="console"):
        build_site(copied, copied.parent)


def test_a_page_without_a_place_stops_the_build(copied: Path) -> None:
    (copied / "docs" / "lost.md").write_text("# Lost\n", encoding="utf-8")
    with pytest.raises(SiteError, match=r"docs/lost\.md"):
        build_site(copied, copied.parent)
