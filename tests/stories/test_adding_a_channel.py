"""A channel is added as CONTRIBUTING says, on a copy of the repository: nothing else changes, and a message arrives."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.architecture.site import build_site
from tests.architecture.tree import ROOT, tracked_files
from tests.faults.machinery.processes import ServedNoroshi

pytestmark = pytest.mark.xdist_group("adding a channel")
"""One worker makes the copy, once."""

EXAMPLE = ROOT / "tests" / "stand_ins" / "courier"
PAYLOADS = EXAMPLE / "tests" / "payloads" / "courier"
REGISTRY = "src/noroshi/flow/send/registry.py"
RULES = ("test_imports.py", "test_docs.py", "test_shape.py", "test_log_fields.py")
PATIENCE = 20


def said_in_contributing() -> tuple[set[str], str]:
    """The files that a channel consists of, and its line in the registry."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Adding a channel\n")[2]
    listed = text.partition("```\n")[2].partition("```")[0]
    [line] = re.findall(r'`("courier": ".*",)`', text)
    return {row.split()[0] for row in listed.splitlines()}, line


def git(copy: Path, *words: str) -> str:
    who = ["-c", "user.name=Hanako", "-c", "user.email=hanako@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *words], cwd=copy, capture_output=True, text=True, check=True).stdout


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False)


def environment(copy: Path, **more: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{copy / 'src'}:{copy}", **more}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing has happened yet."""
    folder = tmp_path_factory.mktemp("clone")
    for path in tracked_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "copy: As it was.")
    return folder


@pytest.fixture(scope="module")
def added(copy: Path) -> Path:
    """The same with the channel."""
    for path in (path for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        target = copy / path.relative_to(EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _, line = said_in_contributing()
    registry = copy / REGISTRY
    text = registry.read_text(encoding="utf-8")
    registry.write_text(text.replace('    "catcher":', f'    {line}\n    "catcher":', 1), encoding="utf-8")
    made = run(copy, "tests.architecture.tables")
    assert made.returncode == 0, made.stderr
    return copy


def test_a_channel_is_its_folder_a_line_a_page_its_payloads_and_their_test(added: Path) -> None:  # issue 4
    files, line = said_in_contributing()
    shown = {row[3:]: row[:2].strip() for row in git(added, "status", "--porcelain", "-uall").splitlines()}
    assert shown.keys() == files
    assert {name for name, kind in shown.items() if kind != "??"} == {REGISTRY}
    changed = [row for row in git(added, "diff", "--unified=0").splitlines() if re.match(r"[+-](?![+-])", row)]
    assert changed == [f"+    {line}"]


def test_the_rules_of_the_code_hold_for_a_channel_that_was_added_so(added: Path) -> None:  # issue 4
    rules = [f"tests/architecture/{name}" for name in RULES]
    chosen = "courier or docs or registry or circle or page or table or link"
    own = "tests/unit/test_courier.py"
    ran = run(added, "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", own, *rules, "-k", chosen)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert own in ran.stdout, "its own tests were among them"
    styled = run(added, "ruff", "check", "--no-cache", "src/noroshi/flow/send")
    assert styled.returncode == 0, styled.stdout


def test_its_page_is_on_the_site(added: Path, tmp_path: Path) -> None:  # issue 4
    page = (build_site(added, tmp_path) / "docs" / "channels" / "courier.html").read_text(encoding="utf-8")
    assert "NOROSHI_COURIER_TOKEN" in page


class CourierDesk(BaseHTTPRequestHandler):
    """Takes whatever comes, and shows it to the test."""

    seen: Queue[tuple[str, str, bytes]] = Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.put((self.path, self.headers["Authorization"], body))
        self.send_response(202)
        self.end_headers()
        self.wfile.write((PAYLOADS / "taken.json").read_bytes())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def courier() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), CourierDesk) as desk:
        Thread(target=desk.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{desk.server_port}"
        desk.shutdown()


def ask(url: str, key: str, method: str, path: str, body: Any = None) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, raw, {"Authorization": f"Bearer {key}"}, method=method), timeout=10) as answer:  # noqa: S310
        return json.load(answer)


def test_a_message_goes_out_over_it(added: Path, courier: str, tmp_path: Path) -> None:  # issue 4
    variables = environment(added, NOROSHI_COURIER_TOKEN="a-token", NOROSHI_COURIER_URL=courier)
    with ServedNoroshi(tmp_path / "data", variables) as served:
        key = served.create_key()
        served.start()
        ask(served.url, key, "PUT", "/api/v1/users/taro", {"name": "Taro", "phone": "+819012345678", "locale": "en"})
        text = {"channel": "sms", "locale": "en", "body": "{{ user.name }}, parcel {{ parcel }} is on its way."}
        ask(served.url, key, "POST", "/api/v1/templates/shipped", text)
        wish = {"user_ids": ["taro"], "template_id": "shipped", "priority": "high", "data": {"parcel": 17}}
        asked = ask(served.url, key, "POST", "/api/v1/notifications", wish)
        path, authorization, body = CourierDesk.seen.get(timeout=PATIENCE)
        assert (path, authorization) == ("/messages", "Bearer a-token")
        assert json.loads(body) == json.loads((PAYLOADS / "message.json").read_bytes())
        deadline = monotonic() + PATIENCE
        status = f"/api/v1/notifications/{asked['batch_id']}/status"
        while ask(served.url, key, "GET", status)["statuses"] != {"SENT": 1}:
            assert monotonic() < deadline, served.log()
            sleep(0.01)
        assert served.stop() == 0
    assert CourierDesk.seen.empty()
