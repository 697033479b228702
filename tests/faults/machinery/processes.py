"""`noroshi serve` as a real process: started on a data folder, killed without warning, started on what is left."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.stand_ins.ledger_provider.process import importing_environment

NOROSHI = (sys.executable, "-m", "noroshi.entrypoints.cli.main")
ALL_SCOPES = "send,read,admin"

_LOOK_EVERY = 0.01
_LOG_TAIL = 4000


class NotReadyError(RuntimeError):
    """The process ended (with `code`) or took too long before /readyz said 200; the message ends with its log."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


class ServedNoroshi:
    """One product on one data folder, through any number of lives. The port stays the same, the log goes on."""

    def __init__(
        self,
        data: Path,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = NOROSHI,
        ready_within: float = 30,
        words: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.port = free_port()
        self.log_path = data.with_name(data.name + ".log")
        self._command = list(command)
        self._environment = importing_environment(**(environment or {}))
        self._ready_within = ready_within
        self._more_words = list(words)
        self._child: subprocess.Popen[bytes] | None = None
        self._lives: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Started, and its end not yet waited for."""
        return self._child is not None

    @property
    def is_alive(self) -> bool:
        return self._child is not None and _end_of(self._child.pid) is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends whatever any of the lives has left, its children too."""
        for life in self._lives:
            if life.returncode is None:
                os.killpg(life.pid, signal.SIGKILL)
                life.wait()

    def start(self, **environment: str) -> float:
        """Returns when /readyz says 200; answers how many seconds that took. `environment` is for this life only."""
        if self._child is not None:
            raise RuntimeError("it is still running")
        self.data.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                [*self._command, *self._words(), *self._more_words, "--data", str(self.data)],
                env={**self._environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._lives.append(self._child)
        self._wait_until_ready(began + self._ready_within)
        return time.monotonic() - began

    def kill(self) -> None:
        """kill -9, the serving process alone: its children must notice for themselves."""
        os.kill(self.pid, signal.SIGKILL)
        self._await_end(within=30)

    def stop(self, within: float = 60) -> int:
        """SIGTERM; answers the exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self._await_end(within)

    def wait(self, within: float = 60) -> int:
        """For the end that it comes to by itself; answers the exit code."""
        return self._await_end(within)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """SIGSTOP now, SIGCONT afterwards: a process that thinks no time has passed (F10)."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Another command on the same data folder, beside the server or without it."""
        return subprocess.run(
            [*self._command, *words, "--data", str(self.data)],
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def create_key(self, scopes: str = ALL_SCOPES) -> str:
        made = self.command("keys", "create", "--name", "faults", "--scopes", scopes)
        if made.returncode:
            raise RuntimeError(f"no key was made: {made.stderr}")
        return made.stdout.strip()

    def log(self) -> str:
        """Everything all lives have printed."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _words(self) -> list[str]:
        return ["serve", "--host", "127.0.0.1", "--port", str(self.port)]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise RuntimeError("it is not running")
        return self._child

    def _await_end(self, within: float) -> int:
        """The exit code, or minus the signal. The dead process is not reaped before the very end: until then no
        other can get its number, and what it leaves behind can be found by it."""
        deadline = time.monotonic() + within
        while (end := _end_of(self.pid)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it did not end within {within} s")
            time.sleep(_LOOK_EVERY)
        self._child = None
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def _wait_until_ready(self, deadline: float) -> None:
        while not _says_ready(self.port):
            code = self._running().poll()
            if code is not None:
                self._child = None
                raise NotReadyError(f"it ended with {code}:\n{self.log()[-_LOG_TAIL:]}", code)
            if time.monotonic() > deadline:
                raise NotReadyError(f"not ready within {self._ready_within} s:\n{self.log()[-_LOG_TAIL:]}")
            time.sleep(_LOOK_EVERY)


class WorkingNoroshi(ServedNoroshi):
    """`noroshi worker`; its port answers for its health and metrics only."""

    def _words(self) -> list[str]:
        return ["worker", "--metrics-port", str(self.port)]


def _end_of(pid: int) -> os.waitid_result | None:
    """How a child ended, without reaping it; None while it lives."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
