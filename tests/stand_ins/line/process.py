"""LINE as a test holds it: started, told how to behave, read, killed and started again."""

import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.stand_ins.ledger_provider.process import importing_environment
from tests.stand_ins.line.conduct import ALONE, BEHAVE, Asked, Conduct, Pushed
from tests.stand_ins.line.server import read_asked, read_pushed

SERVER = [sys.executable, "-m", "tests.stand_ins.line.server", "--with-parent"]
TOKEN = "token-of-the-shops-channel"
SECRET = "0123456789abcdef0123456789abcdef"

NOWHERE = {
    "LINE_MESSAGING_CHANNEL_ACCESS_TOKEN": TOKEN,
    "LINE_MESSAGING_CHANNEL_SECRET": SECRET,
    "NOROSHI_LINE_URL": "http://127.0.0.1:9",
}
"""What a product needs that hears from LINE and never calls it."""


def user_id(number: int) -> str:
    """The id under which LINE knows one of many people."""
    return f"U{number:032x}"


class LineStandIn:
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
            [*SERVER, "--ledger", str(self.ledger), "--token", TOKEN, "--port", str(self.port)],
            env=importing_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the stand-in for LINE did not start: exit code {self._child.wait()}")
        self.port = int(line)

    def kill(self) -> None:
        """SIGKILL; a second call does nothing."""
        child, self._child = self._child, None
        if child is not None:
            with child:
                child.kill()

    def behave(self, conduct: Conduct) -> None:
        """From the next push on."""
        self._ask("PUT", BEHAVE, msgspec.json.encode(conduct))

    def await_alone(self) -> None:
        """Returns when no push is under way: LINE then knows all that a killed product has sent."""
        self._ask("GET", ALONE)

    def pushed(self) -> list[Pushed]:
        return read_pushed(self.ledger)

    def asked(self) -> list[Asked]:
        """In the order in which they were dealt with."""
        return read_asked(self.ledger)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What the product's process needs to send through this stand-in."""
        return NOWHERE | {"NOROSHI_LINE_URL": self.url}

    def _ask(self, method: str, path: str, body: bytes | None = None) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"the stand-in for LINE answered {answer.status}")
        finally:
            connection.close()
