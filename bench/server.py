"""The server under test and its load: a population in; a running process, what it used, and what it left behind out."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.generator import Plan, Report
from bench.noop import TALLY
from bench.population import Population
from bench.processes import Memory, Usage, cpu_of, memory_of

_ROOT = Path(__file__).parent.parent
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_LOOK_EVERY = 0.01

RAISED = {"NOROSHI_MAX_WAITING_CALLS": "1000000", "NOROSHI_MAX_UNFINISHED": "100000000"}
"""The limits of the 503; keys have no 429 limit and the no-op provider no pace."""

_IS_BUSY = """
SELECT EXISTS (SELECT 1 FROM batches WHERE state = 0 AND due_at <= ?1)
    OR EXISTS (SELECT 1 FROM deliveries WHERE state = 1)
    OR EXISTS (SELECT 1 FROM deliveries WHERE lane IN (SELECT value FROM json_each(?2)) AND state = 0 AND due_at <= ?1)
"""
_IS_UNDECIDED = "SELECT EXISTS (SELECT 1 FROM batches WHERE state = 0 AND due_at <= ?1)"
_PRIORITIES = ("critical", "high", "normal", "low")
_LANES = msgspec.json.encode([f"email.{who}.{name}" for who in ("noop", "smtp") for name in _PRIORITIES]).decode()


class BenchError(Exception):
    """The benchmark itself cannot go on; the text says why."""


class Server:
    """A process that answers HTTP on a port of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self._process = process
        self.pid = process.pid
        self.port = port

    def cpu(self) -> Usage:
        return cpu_of(self.pid)

    def memory(self) -> Memory:
        return memory_of(self.pid)

    def ask(self, method: str, path: str, key: str = "", body: bytes | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise BenchError(f"the server ended with {self._process.returncode}")
            try:
                if self.ask("GET", "/readyz")[0] < 500:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise BenchError("the server does not answer")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise BenchError("the server did not stop when asked") from None


class Noroshi(Server):
    """The product on one population. `reports` are those of every load it was given."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, population: Population) -> None:
        super().__init__(process, port)
        self.population = population
        self.reports: list[Report] = []
        self._reader: apsw.Connection | None = None
        self._pause_id: int | None = None

    @property
    def tally(self) -> Path:
        return tally_of(self.population)

    def reader(self) -> apsw.Connection:
        """A second connection: what it sees is committed."""
        if self._reader is None:
            self._reader = self.population.open(is_reader=True, cache_kib=2048)
        return self._reader

    def pause(self) -> None:
        """Nothing is sent from here on; accepting and addressing go on."""
        status, body = self.ask("POST", "/api/v1/pauses", self.population.key, b'{"kind":"everything"}')
        if status != 201:
            raise BenchError(f"the pause was answered with {status}")
        self._pause_id = msgspec.json.decode(body)["pause_id"]

    def find_pause(self) -> None:
        """The pause that a server before this one left behind, to be ended by `resume`."""
        _, body = self.ask("GET", "/api/v1/pauses", self.population.key)
        self._pause_id = msgspec.json.decode(body)["items"][0]["pause_id"]

    def resume(self) -> None:
        status, _ = self.ask("DELETE", f"/api/v1/pauses/{self._pause_id}", self.population.key)
        if status != 204:
            raise BenchError(f"the end of the pause was answered with {status}")

    def load(self, **plan: Any) -> Report:
        return self.finish(self.begin(**plan))

    def begin(self, **plan: Any) -> "subprocess.Popen[bytes]":
        return begin_load(Plan(port=self.port, key=self.population.key, **plan))

    def finish(self, generator: "subprocess.Popen[bytes]") -> Report:
        report = finish_load(generator)
        self.reports.append(report)
        return report

    def wait_until_decided(self) -> None:
        self._wait(_IS_UNDECIDED, ())

    def wait_until_quiet(self) -> None:
        """Nothing that is due is left undecided, waiting or leased."""
        self._wait(_IS_BUSY, (_LANES,))

    def _wait(self, question: str, more: tuple[str, ...]) -> None:
        reader = self.reader()
        while reader.execute(question, (time.time_ns() // 1000, *more)).fetchall()[0][0]:
            if self._process.poll() is not None:
                raise BenchError(f"the server ended with {self._process.returncode}")
            time.sleep(_LOOK_EVERY)

    def commits(self) -> float:
        """How often the store has committed so far."""
        _, text = self.ask("GET", "/metrics", self.population.key)
        for line in text.decode().splitlines():
            if line.startswith("store_commit_group_size_count"):
                return float(line.split()[1])
        return 0.0


def tally_of(population: Population) -> Path:
    return population.folder / "tally"


@contextmanager
def noroshi_on(
    population: Population, *, channel: str = "noop", more: Mapping[str, str] | None = None
) -> Iterator[Noroshi]:
    """The product, started; stopped cleanly at the end. `channel`: `noop`, `catcher`, or one that `more` sets up."""
    environment = {"NOROSHI_DATA": str(population.folder), "NOROSHI_LOG_LEVEL": "error", **RAISED, **(more or {})}
    if channel == "noop":
        environment |= {"NOROSHI_CHANNELS": "bench.noop:factory", TALLY: str(tally_of(population))}
    elif channel == "catcher":
        environment |= {"NOROSHI_CATCHER": "on"}
    port = free_port()
    command = ["noroshi.entrypoints.cli.main", "serve", "--port", str(port)]
    server = Noroshi(spawn(command, environment), port, population)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@contextmanager
def decoder() -> Iterator[Server]:
    """The same web server with a route that only decodes."""
    port = free_port()
    server = Server(spawn(["bench.decode_only", str(port)], {}), port)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def begin_load(plan: Plan) -> "subprocess.Popen[bytes]":
    generator = spawn(["bench.generator"], {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert generator.stdin is not None
    generator.stdin.write(msgspec.json.encode(plan))
    generator.stdin.close()
    return generator


def finish_load(generator: "subprocess.Popen[bytes]") -> Report:
    assert generator.stdout is not None
    output = generator.stdout.read()
    generator.stdout.close()
    if generator.wait() != 0:
        raise BenchError("the load generator failed: see above")
    report = msgspec.json.decode(output, type=Report)
    if report.statuses.keys() != {"202"}:
        raise BenchError(f"answers other than 202: {report.statuses}")
    return report


def spawn(command: list[str], environment: Mapping[str, str], **streams: Any) -> "subprocess.Popen[bytes]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NOROSHI_")}
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "src")])
    return subprocess.Popen(
        [sys.executable, "-m", *command], env={**kept, "PYTHONPATH": path, **environment}, cwd=_ROOT, **streams
    )


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
