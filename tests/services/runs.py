"""A run is a folder in which servers stand for as long as one process lives; what leaves is nothing at all.

The process that began the run holds a lock in the folder. A guard beside it waits for that lock, so that no server
outlives a run that was interrupted or killed."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "NOROSHI_TEST_RUN"
"""Tells children, such as the workers of pytest-xdist, which run they belong to."""

PID_FILE = "pid"
"""In each server's folder: the number of the process, written at every start."""

LOOK_EVERY = 0.01
_ENDS_WITHIN = 10.0
_guards: list[subprocess.Popen[bytes]] = []  # never waited for, and a forgotten child is a warning


@contextlib.contextmanager
def joined_run() -> Iterator[Path]:
    """The run that this process belongs to; if to none, a new one that ends here."""
    given = os.environ.get(VARIABLE)
    if given and Path(given).is_dir():
        yield Path(given)
        return
    run = new_run()
    with locked(run / "alive"):
        os.environ[VARIABLE] = str(run)
        try:
            yield run
        finally:
            os.environ.pop(VARIABLE, None)
            sweep(run)


def current_run() -> Path:
    """Only within one: a server started outside would be gone before anyone could use it."""
    given = os.environ.get(VARIABLE)
    if given is None:
        raise RuntimeError("no run has begun: `with joined_run()`")
    return Path(given)


def new_run() -> Path:
    """Where a server that runs as another account reaches its own folder, as it might not in root's TMPDIR."""
    run = Path(tempfile.mkdtemp(prefix="noroshi-", dir=None if os.geteuid() else "/tmp"))  # noqa: S108
    run.chmod(0o711)
    return run


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; however it ends, the next one gets it."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def guard(run: Path) -> None:
    """Sees to it that the run is swept when its process is gone; a second call changes nothing."""
    try:
        (run / "guarded").touch(exist_ok=False)
    except FileExistsError:
        return
    words = [sys.executable, "-m", "tests.services.guard", str(run)]
    nowhere = subprocess.DEVNULL
    _guards.append(
        subprocess.Popen(words, cwd=ROOT, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    )


def sweep(run: Path) -> None:
    """Ends every server of a run and removes its folder."""
    for pid_file in run.glob(f"*/{PID_FILE}"):
        end(int(pid_file.read_text()), pid_file.parent)
    shutil.rmtree(run, ignore_errors=True)


def end(pid: int, folder: Path) -> None:
    """Nothing in a run's folder is worth a tidy shutdown. Another's process that got the number is left alone."""
    for how in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + _ENDS_WITHIN
        with contextlib.suppress(ProcessLookupError):
            if is_running(pid, folder):
                os.kill(pid, how)
        while is_running(pid, folder) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY)


def is_running(pid: int, folder: Path) -> bool:
    """Whether this process was started on this folder. The dead have no command line, waited for or not."""
    return str(folder) in _command_line(pid)


def _command_line(pid: int) -> str:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    return subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
