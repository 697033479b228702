"""A cradle: a process that has the product loaded, and forks whatever a test starts.

Most of a start is loading modules, and the tests start hundreds of processes. What is born here has a process, a
session, an environment and a log of its own, and dies like any other.
"""

import atexit
import gc
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import noroshi
from tests.stand_ins.ledger_provider.process import importing_environment

MODULES = ("noroshi.entrypoints.cli.main", "tests.faults.sweep.launcher")
"""What can be born: the product's command line, and the same with something planted in it."""

_LOADED_AT_THE_START = (
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "tests.stand_ins.ledger_provider.channel",
)
"""Besides the product itself: what libraries load by name once they are used."""

_MUST_BE_EQUAL = ("PYTHONPATH", "LD_PRELOAD", "PYTHONHASHSEED", "PYTHONMALLOC")
"""What a process can be told only before it begins."""

_LOOK_EVERY = 0.01


class Birth(NamedTuple):
    module: str
    words: list[str]
    environment: dict[str, str]
    out: str
    err: str


class Cradle:
    """One for all tests of a process; begun on first use, gone with it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def can_bear(self, command: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Whether what would be started is a module that lies here, in surroundings that can be had by a fork."""
        usual = importing_environment()
        return (
            tuple(command[:-1]) == (sys.executable, "-m")
            and command[-1] in MODULES
            and all(environment.get(name) == usual.get(name) for name in _MUST_BE_EQUAL)
        )

    def bear(self, module: str, words: Sequence[str], environment: Mapping[str, str], out: Path, err: Path) -> int:
        """The number of the new process; what it says is added to the two files."""
        pid: int = self._ask("bear", Birth(module, list(words), dict(environment), str(out), str(err)))
        return pid

    def end_of(self, pid: int) -> int | None:
        """Its exit code, or minus the signal; None while it lives. It stays unreaped, and its number its own."""
        code: int | None = self._ask("end_of", pid)
        return code

    def reap(self, pid: int) -> int:
        """Waits for its end."""
        code: int = self._ask("reap", pid)
        return code

    def run(
        self, module: str, words: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """A command from its beginning to its end."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            pid = self.bear(module, words, environment, out, err)
            while self.end_of(pid) is None:  # others have something to ask meanwhile
                time.sleep(_LOOK_EVERY)
            return subprocess.CompletedProcess(list(words), self.reap(pid), out.read_text(), err.read_text())

    def _ask(self, name: str, about: Any) -> Any:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    env=importing_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                atexit.register(self.close)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            pickle.dump((name, about), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # noqa: S301 - our own child's

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            process.stdin.close()
            process.wait()
            process.stdout.close()


CRADLE = Cradle()


def _load() -> None:
    for module in pkgutil.walk_packages(noroshi.__path__, "noroshi."):
        if not module.ispkg:
            import_module(module.name)
    for name in (*MODULES, *_LOADED_AT_THE_START):
        import_module(name)
    gc.collect()
    gc.freeze()


def _serve() -> Birth:
    """Answers whoever began this process until they are gone; returns in what is born, and nowhere else."""
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            name, about = pickle.load(asked)  # noqa: S301 - our own parent's
        except EOFError:
            sys.exit()
        if name == "bear":
            pid = os.fork()
            if not pid:
                return about  # type: ignore[no-any-return]
            answer: int | None = pid
        elif name == "end_of":
            answer = _end_of(about, os.WNOWAIT | os.WNOHANG)
        else:
            answer = _end_of(about, 0)
        pickle.dump(answer, answers)
        answers.flush()


def _end_of(pid: int, how: int) -> int | None:
    end = os.waitid(os.P_PID, pid, os.WEXITED | how)
    if end is None:
        return None
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


def _begin(birth: Birth) -> Callable[[], None]:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, birth.out, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, birth.err, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(birth.environment)
    sys.argv = ["noroshi", *birth.words]
    module: Any = sys.modules[birth.module]
    begin: Callable[[], None] = getattr(module, "main", None) or (lambda: module.app(prog_name="noroshi"))
    return begin


def main() -> None:
    # Who interrupts the tests means them; they end what was born here, and then this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _load()
    _begin(_serve())()


if __name__ == "__main__":
    main()
