"""A PostgreSQL of our own: settings in; out comes a server that can be stopped, killed and started again."""

import contextlib
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.services.installation import Installation, ServiceMissingError, find_postgres, plain_environment
from tests.services.runs import LOOK_EVERY, PID_FILE, guard, joined_run, locked

PORTS = range(15_000, 30_000)
"""Below those that systems hand out for outgoing connections. A client that asks again and again for a port up there
while the server is down will one day be given that very port for its own end, and meet itself."""

_READY = {"ready", "standby"}
_STILL_HELD = "pre-existing shared memory block"
_LOG_TAIL = 4000


class PostgresServer:
    """One server in a folder of its own, through any number of lives; port, password and URL stay the same."""

    def __init__(self, installation: Installation, run: Path, *, password: str = "", **settings: str) -> None:
        self._installation = installation
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=run))
        self.cluster = self.folder / "data"
        self.port = _free_port()
        self.password = password or secrets.token_hex(16)
        self.settings = settings
        self._log_path = self.folder / "log"
        self._child: subprocess.Popen[bytes] | None = None
        if installation.account.uid is not None:
            shutil.chown(self.folder, installation.account.uid, installation.account.gid)

    @property
    def url(self) -> str:
        """Of the maintenance database, as the superuser."""
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def create(self) -> None:
        """A new, empty cluster."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        # md5, since SCRAM takes 2 to 4 ms more for each connection (measured); trust would lend our account to any
        # neighbour.
        words = ["--username=postgres", "--auth=md5", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C"]
        self.tool("initdb", f"--pgdata={self.cluster}", "--no-sync", *words)
        secret.unlink()

    def copy(self, primary: "PostgresServer") -> None:
        """A standby of another server, with the same password; it follows from its start on."""
        self.tool("pg_basebackup", f"--dbname={primary.url}", f"--pgdata={self.cluster}", "-R", "-c", "fast", "-N")

    def start(self, within: float = 30) -> None:
        """Returns when it takes connections."""
        if self.is_running:
            raise RuntimeError("it is still running")
        deadline = time.monotonic() + within
        while not self._begin(deadline):
            time.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """A tidy end: clients are cut off, everything is written out."""
        self._end(signal.SIGINT)

    def kill(self, by: signal.Signals = signal.SIGQUIT) -> None:
        """An end without a word, as `pg_ctl stop -m immediate`; SIGKILL takes the first process alone, and the others
        find out for themselves."""
        self._end(by)

    def restart(self) -> None:
        """On the same port, whether it runs or was killed."""
        if self.is_running:
            self.stop()
        self.start()

    def promote(self) -> None:
        """Makes a standby a server of its own."""
        self.tool("pg_ctl", "promote", f"--pgdata={self.cluster}")

    def discard(self) -> None:
        """Ends it, if need be, and removes all it has kept."""
        if self.is_running:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tool(self, program: str, *words: str) -> str:
        """One of PostgreSQL's own programs, run as the server's account."""
        return self._installation.run(program, *words, cwd=self.folder)

    def log(self) -> str:
        """Everything all lives have printed."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def _begin(self, deadline: float) -> bool:
        """False if processes of the last life still hold its memory: they must go first."""
        printed = len(self.log())
        self._spawn()
        while not self._is_ready():
            if not self.is_running:
                self._child = None
                if _STILL_HELD in self.log()[printed:] and time.monotonic() < deadline:
                    return False
                raise RuntimeError(f"postgres did not start:\n{self.log()[-_LOG_TAIL:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"postgres was not ready in time:\n{self.log()[-_LOG_TAIL:]}")
            time.sleep(LOOK_EVERY)
        return True

    def _spawn(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        program, account = self._installation.binaries / "postgres", self._installation.account
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log_path.open("ab") as log:
            self._child = subprocess.Popen(
                [program, "-D", self.cluster, *words],
                cwd=self.folder,
                env=plain_environment(),
                user=account.uid,
                group=account.gid,
                extra_groups=account.groups,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.folder / PID_FILE).write_text(str(self._child.pid))

    def _is_ready(self) -> bool:
        """The server says so itself, in the eighth line of its own file."""
        try:
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self._running().pid) and lines[7].strip() in _READY

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise RuntimeError("it is not running")
        return self._child

    def _end(self, how: signal.Signals, within: float = 30) -> None:
        child = self._running()
        child.send_signal(how)
        child.wait(within)
        self._child = None


@contextlib.contextmanager
def running_postgres(*, standby_of: PostgresServer | None = None, **settings: str) -> Iterator[PostgresServer]:
    """A server beside the shared one, such as `running_postgres(fsync="off")`; gone afterwards, in whatever state."""
    with joined_run() as run:
        installation = installation_in(run)
        guard(run)
        server = PostgresServer(installation, run, password=standby_of.password if standby_of else "", **settings)
        try:
            server.copy(standby_of) if standby_of else server.create()
            server.start()
            yield server
        finally:
            server.discard()


def installation_in(run: Path) -> Installation:
    """Looked for once in a run: asking apt takes minutes, and its "no" is as good for the next test."""
    refusal = run / "postgres.missing"
    with locked(run / "postgres.finding"):
        if refusal.exists():
            raise ServiceMissingError(refusal.read_text())
        try:
            return find_postgres()
        except ServiceMissingError as why:
            refusal.write_text(str(why))
            raise


def _free_port() -> int:
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = random.choice(PORTS)
            probe.bind(("127.0.0.1", port))
            return port
