"""The ledger provider as a test holds it: started, told how to behave, read, killed and started again."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.stand_ins.ledger_provider.ledger import SeenRequest, TakenMessage, read_requests, read_taken
from tests.stand_ins.ledger_provider.wire import AwaitAlone, AwaitFlight, Behave, Conduct, Reply, frame

ROOT = Path(__file__).parents[3]
"""Where `tests` and `src` lie: a child must be able to import both."""

SERVER = [sys.executable, "-m", "tests.stand_ins.ledger_provider.server", "--with-parent"]
CHANNEL_FACTORY = "tests.stand_ins.ledger_provider.channel:factory"


def importing_environment(**more: str) -> dict[str, str]:
    """This process's environment, in which a child finds our packages wherever it is started."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **more}


class LedgerProvider:
    """It ends with the test's process at the latest, however that ends. Port and ledger outlast a restart."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.port = 0
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        self._child = subprocess.Popen(
            [*SERVER, "--ledger", str(self.ledger), "--port", str(self.port)],
            env=importing_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the ledger provider did not start: exit code {self._child.wait()}")
        self.port = int(line)

    def kill(self) -> None:
        """SIGKILL; a second call does nothing."""
        child, self._child = self._child, None
        if child is not None:
            with child:
                child.kill()

    def behave(self, conduct: Conduct) -> None:
        """From the next request on."""
        self._ask(Behave(conduct))

    def await_alone(self, within: float = 30) -> None:
        """Returns when every other connection has ended: the provider then knows all that a killed product has sent."""
        self._ask(AwaitAlone(), within)

    def await_flight(self, sender: str, within: float = 30) -> None:
        """Returns when a request of this sender is in hand: for as long as its delay lasts it stays so."""
        self._ask(AwaitFlight(sender), within)

    def _ask(self, request: Behave | AwaitAlone | AwaitFlight, within: float = 10) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=within) as connection:
            connection.sendall(frame(request))
            with connection.makefile("rb") as answer:
                length = int.from_bytes(answer.read(4), "big")
                msgspec.msgpack.decode(answer.read(length), type=Reply)

    def taken(self) -> list[TakenMessage]:
        return read_taken(self.ledger)

    def requests(self) -> list[SeenRequest]:
        return read_requests(self.ledger)

    @property
    def environment(self) -> dict[str, str]:
        """What the product's process needs to send through this provider."""
        return {"NOROSHI_CHANNELS": CHANNEL_FACTORY, "LEDGER_PROVIDER_PORT": str(self.port)}
