"""Where the mail ends: `smtp-sink` of Postfix if it is to be had, else a sink of our own; how much it took out.

    python -m bench.mail_sink PORT

Both say yes to everything. Ours also keeps the Message-IDs, so that a double is seen, and prints at its end how many
letters it took and how many of them were different ones.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvloop
from tests.services.postfix import PostfixTools

from bench.counts import WrongCountError
from bench.processes import cpu_of
from bench.server import BenchError, free_port, spawn

CONNECTIONS = 4

_END = b"\r\n.\r\n"
_ID = b"\r\nMessage-ID: <"
_ANSWERS = {
    b"EHLO": b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n",
    b"QUIT": b"221 bye\r\n",
}
_YES = b"250 2.0.0 Ok\r\n"
_GO_AHEAD = b"354 End data with <CR><LF>.<CR><LF>\r\n"
_START_SECONDS = 10.0


class Sink:
    """A running sink. Its own CPU time is that of a process of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, name: str, output: Path) -> None:
        self._process = process
        self._output = output
        self.port = port
        self.name = name

    def cpu(self) -> float:
        return cpu_of(self._process.pid).server

    def close(self) -> int:
        """How many letters it took in all; raises WrongCountError if it saw one twice."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)
        text = self._output.read_text(encoding="ascii").replace("\r", "\n").split()
        counted = [int(word.removeprefix("mesg=")) for word in text if word.startswith("mesg=")]
        different = [int(word.removeprefix("different=")) for word in text if word.startswith("different=")]
        taken = counted[-1] if counted else 0
        if different and different[-1] != taken:
            raise WrongCountError(f"the sink took {taken} letters, {different[-1]} different ones")
        return taken


@contextmanager
def open_sink(folder: Path, tools: PostfixTools | None) -> Iterator[Sink]:
    """Without tools it is our own."""
    port, output = free_port(), folder / "sink"
    with output.open("wb") as out:
        if tools is not None:
            who = ["-u", "nobody"] if os.geteuid() == 0 else []
            command = tools.command("smtp-sink", "-c", *who, f"127.0.0.1:{port}", "200")
            process = subprocess.Popen(command, env=tools.environment, stdout=out)
        else:
            process = spawn(["bench.mail_sink", str(port)], {}, stdout=out)
    try:
        _wait_for(port, process)
        yield Sink(process, port, "smtp-sink" if tools is not None else "our own sink", output)
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        listening = Path("/proc/net/tcp").read_text(encoding="ascii")
        if f"0100007F:{port:04X} 00000000:0000 0A" in listening:
            return
        time.sleep(0.05)
    raise BenchError("the sink does not listen")


class _Conversation(asyncio.Protocol):
    def __init__(self, ids: list[bytes]) -> None:
        self._ids = ids
        self._pending = b""
        self._is_content = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(b"220 sink ESMTP\r\n")

    def data_received(self, data: bytes) -> None:
        self._pending += data
        answers: list[bytes] = []
        while (end := self._pending.find(mark := _END if self._is_content else b"\r\n")) >= 0:
            piece, self._pending = self._pending[:end], self._pending[end + len(mark) :]
            answers.append(self._answer(piece))
        if answers:
            self._transport.write(b"".join(answers))

    def _answer(self, piece: bytes) -> bytes:
        if self._is_content:
            self._is_content = False
            start = piece.find(_ID) + len(_ID)
            self._ids.append(piece[start : piece.find(b">", start)])
            return _YES
        command = piece[:4].upper()
        self._is_content = command == b"DATA"
        return _GO_AHEAD if self._is_content else _ANSWERS.get(command, _YES)


async def _serve(port: int) -> None:
    ids: list[bytes] = []
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    server = await loop.create_server(lambda: _Conversation(ids), "127.0.0.1", port)
    await stopped.wait()
    server.close()
    print(f"mesg={len(ids)} different={len(set(ids))}")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
