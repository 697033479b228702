"""B7's own parts: Postfix's two programs found or unpacked, a sink that counts, and letters of the size it says."""

from pathlib import Path

import pytest
from bench.b07_mail import LETTER_BYTES, _source
from bench.mail_sink import open_sink
from bench.mail_texts import HTML, SENDER, SUBJECT, TEXT
from jinja2.sandbox import SandboxedEnvironment
from smtp_cast import an_attempt, named
from tests.services import postfix
from tests.services.installation import ServiceMissingError
from tests.services.postfix import PostfixTools, find_postfix

from noroshi.domain.instants import Instant
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp.addresses import read_mailbox
from noroshi.flow.send.email.smtp.payload import Letter, Letterhead

LETTERS = 50


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Answers the folder into which a package would be unpacked."""
    monkeypatch.setattr(postfix.shutil, "which", lambda name, **_: name if name == "apt-get" else None)
    monkeypatch.setattr(postfix, "UNPACKED", tmp_path / "services" / "postfix")
    return tmp_path / "services" / "postfix"


class Packages:
    """An archive of packages: each unpacks to nothing, and the programs need so many libraries before they start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, needs: dict[str, str], enough: set[str]) -> None:
        self.taken: list[str] = []
        self._needs = needs
        self._enough = enough
        monkeypatch.setattr(postfix, "_download", self._download)
        monkeypatch.setattr(postfix, "run_as", self._run)
        monkeypatch.setattr(postfix, "_tried", self._tried)

    def _download(self, package: str, folder: Path) -> None:
        self.taken.append(package)
        (folder / f"{package}.deb").touch()

    def _run(self, _account: object, words: list[str]) -> str:
        return self._needs[self.taken[-1]] if "--field" in words else ""

    def _tried(self, tools: PostfixTools) -> PostfixTools:
        if not self._enough <= set(self.taken):
            raise ServiceMissingError("smtp-sink ended with 127: a library is missing")
        return tools


def test_programs_that_can_be_loaded_need_no_further_package(
    monkeypatch: pytest.MonkeyPatch, nothing_installed: Path
) -> None:
    packages = Packages(monkeypatch, {"postfix": "libc6 (>= 2.35), libdb5.3, adduser"}, {"postfix"})
    assert find_postfix().programs == nothing_installed / "usr/sbin"
    assert find_postfix().programs == nothing_installed / "usr/sbin"  # as it was left
    assert packages.taken == ["postfix"]


def test_libraries_that_this_machine_lacks_are_unpacked_beside_the_programs(
    monkeypatch: pytest.MonkeyPatch, nothing_installed: Path
) -> None:
    needs = {
        "postfix": "libc6 (>= 2.35), libnsl2 (>= 1.0), adduser, cpio | pax",
        "libnsl2": "libtirpc3",
        "libtirpc3": "",
    }
    packages = Packages(monkeypatch, needs, {"libtirpc3"})
    find_postfix()
    assert packages.taken == ["postfix", "libnsl2", "libtirpc3"]


def test_what_cannot_be_had_leaves_a_reason_in_one_line_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, nothing_installed: Path
) -> None:
    Packages(monkeypatch, {"postfix": ""}, {"a library of nobody"})
    with pytest.raises(ServiceMissingError, match=r"no smtp-sink and smtp-source on PATH.*a library is missing") as why:
        find_postfix()
    assert "\n" not in str(why.value)
    assert not list(nothing_installed.parent.iterdir())


def test_without_apt_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, nothing_installed: Path) -> None:
    monkeypatch.setattr(postfix.shutil, "which", lambda _name, **_: None)
    with pytest.raises(ServiceMissingError, match=r"; no apt$"):
        find_postfix()
    assert not nothing_installed.exists()


def test_the_sink_of_postfix_counts_what_its_source_sends(tmp_path: Path) -> None:
    try:
        tools = find_postfix()
    except ServiceMissingError as why:  # B7 does without
        pytest.skip(f"no Postfix: {why}")
    with open_sink(tmp_path, tools) as sink:
        assert sink.name == "smtp-sink"
        assert _source(tools, sink, LETTERS).rate > 0
        assert sink.close() == LETTERS


def test_the_source_sends_letters_of_the_size_of_ours() -> None:
    seen = {"user": {"name": "Person 12345"}, "order": "mail-000000012", "total": 4200, "items": ["tea", "cake"]}
    plain, rich = SandboxedEnvironment(), SandboxedEnvironment(autoescape=True)
    subject, text = (plain.from_string(one).render(seen) for one in (SUBJECT, TEXT))
    content = Content(text, subject=subject, metadata={"html_body": rich.from_string(HTML).render(seen)})
    sender = read_mailbox(SENDER)
    assert sender is not None
    letter = Letterhead(sender, None, Instant(0)).letter(0, an_attempt(12345, content, recipient=named("Person 12345")))
    assert isinstance(letter, Letter)
    assert letter.size == pytest.approx(LETTER_BYTES, rel=0.02)
