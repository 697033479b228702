"""The servers that many tests share: a name in, the URL of a running server out, started at the first call.

In this order: the one that `NOROSHI_TEST_<NAME>` names, the one that `make services` keeps, this run's own."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.services.postgres import PostgresServer, installation_in
from tests.services.runs import ROOT, current_run, guard, is_running, locked, new_run, sweep

KEPT = ROOT / "build" / "services"


class Standing(NamedTuple):
    """A server as it is remembered in a file, so that other processes find it."""

    url: str
    pid: int
    run: str

    @property
    def is_alive(self) -> bool:
        return is_running(self.pid, Path(self.run))


def _postgres(run: Path) -> PostgresServer:
    server = PostgresServer(installation_in(run), run, max_connections="300")
    server.create()
    server.start()
    return server


SERVICES: dict[str, Callable[[Path], PostgresServer]] = {"postgres": _postgres}
"""Each starts a server in the folder of a run, or raises `ServiceMissingError`."""

_started: list[PostgresServer] = []  # ended by the sweep, not by whoever forgets them


def url_of(name: str) -> str:
    """Raises `ServiceMissingError`."""
    if given := os.environ.get(f"NOROSHI_TEST_{name.upper()}"):
        return given
    if kept := standing(name):
        return kept.url
    run = current_run()
    with locked(run / f"{name}.lock"):
        known = _remembered(run / f"{name}.json")
        if known is None:
            guard(run)
            known = _start(name, run, run / f"{name}.json")
        return known.url


def keep(name: str) -> Standing:
    """For `make services`: it runs until `release`, and a second call finds it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with locked(KEPT / "lock"):
        known = _remembered(KEPT / f"{name}.json")
        if known is None:
            run = new_run()
            try:
                known = _start(name, run, KEPT / f"{name}.json")
            except BaseException:
                sweep(run)
                raise
        return known


def standing(name: str) -> Standing | None:
    """What `make services` keeps."""
    return _remembered(KEPT / f"{name}.json")


def release(name: str) -> bool:
    """Whether there was one to end."""
    known = standing(name)
    if known is not None:
        sweep(Path(known.run))
        (KEPT / f"{name}.json").unlink()
    return known is not None


def _start(name: str, run: Path, file: Path) -> Standing:
    server = SERVICES[name](run)
    _started.append(server)
    known = Standing(server.url, server.pid, str(run))
    part = file.with_suffix(".part")
    part.touch(mode=0o600)  # it holds the password
    part.write_text(json.dumps(known._asdict()))
    part.replace(file)
    return known


def _remembered(file: Path) -> Standing | None:
    """What a dead server has left is swept away."""
    try:
        known = Standing(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    if known.is_alive:
        return known
    sweep(Path(known.run))
    file.unlink(missing_ok=True)
    return None
