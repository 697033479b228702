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
from typing import Protocol, Self

from tests.faults.machinery.cradle import CRADLE
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


class Life(Protocol):
    """A process that a test has begun. A dead one is not reaped before `reap`: until then no other can get its number,
    and what it leaves behind can be found by it."""

    pid: int

    def end(self) -> int | None:
        """The exit code, or minus the signal; None while it lives."""

    def reap(self) -> int: ...


class Begun:
    """A life from the interpreter's first moment on."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as opened:
            self._process = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened, start_new_session=True
            )
        self.pid = self._process.pid

    def end(self) -> int | None:
        if self._process.returncode is not None:
            return self._process.returncode
        end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if end is None:
            return None
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def reap(self) -> int:
        return self._process.wait()


class Born:
    """A life that was forked where everything is loaded."""

    def __init__(self, module: str, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.pid = CRADLE.bear(module, words, environment, log, log)
        self._reaped: int | None = None

    def end(self) -> int | None:
        return CRADLE.end_of(self.pid) if self._reaped is None else self._reaped

    def reap(self) -> int:
        if self._reaped is None:
            self._reaped = CRADLE.reap(self.pid)
        return self._reaped


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
        self._child: Life | None = None
        self._lives: list[Life] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def keeper_pid(self) -> int:
        """The process that has the store: a fork, so it goes by the same command."""
        command = _command_of(self.pid)
        (keeper,) = (child for child in children_of(self.pid) if _command_of(child) == command)
        return keeper

    @property
    def is_running(self) -> bool:
        """Started, and its end not yet waited for."""
        return self._child is not None

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.end() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends whatever any of the lives has left, its children too."""
        while self._lives:
            life = self._lives.pop()
            try:
                os.killpg(life.pid, signal.SIGKILL)
            except ProcessLookupError:  # born, and not yet come to a group of its own
                os.kill(life.pid, signal.SIGKILL)
            life.reap()

    def start(self, **environment: str) -> float:
        """Returns when /readyz says 200; answers how many seconds that took. `environment` is for this life only."""
        if self._child is not None:
            raise RuntimeError("it is still running")
        self.data.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        self._await_silence(began + self._ready_within)
        words = [*self._words(), *self._more_words, "--data", str(self.data)]
        environment = {**self._environment, **environment}
        if CRADLE.can_bear(self._command, environment):
            self._child = Born(self._command[-1], words, environment, self.log_path)
        else:
            self._child = Begun([*self._command, *words], environment, self.log_path)
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
        asked = [*words, "--data", str(self.data)]
        environment = {**self._environment, **environment}
        if CRADLE.can_bear(self._command, environment):
            return CRADLE.run(self._command[-1], asked, environment)
        return subprocess.run([*self._command, *asked], env=environment, capture_output=True, text=True, check=False)

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

    def _running(self) -> Life:
        if self._child is None:
            raise RuntimeError("it is not running")
        return self._child

    def _await_end(self, within: float) -> int:
        """The exit code, or minus the signal."""
        deadline = time.monotonic() + within
        while (code := self._running().end()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it did not end within {within} s")
            time.sleep(_LOOK_EVERY)
        self._child = None
        return code

    def _await_silence(self, deadline: float) -> None:
        """Children of a life that was killed listen for a moment longer: they would be taken for the next one."""
        while self._lives and _is_listened_to(self.port):
            if time.monotonic() > deadline:
                raise NotReadyError("what an earlier life has left still listens")
            time.sleep(_LOOK_EVERY)

    def _wait_until_ready(self, deadline: float) -> None:
        while not _says_ready(self.port):
            code = self._running().end()
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


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_listened_to(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
