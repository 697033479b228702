"""The provider's process: requests come in over loopback, taken messages are on disk before their answer goes out.

`python -m tests.stand_ins.ledger_provider.server --ledger FILE --port 0` prints its port and serves until it is
killed or, with `--with-parent`, until its standard input ends.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from noroshi.domain.ids import show
from noroshi.domain.instants import Instant, moment_of, plus
from tests.stand_ins.ledger_provider.ledger import SeenRequest, TakenMessage, drop_torn_line, requests_path
from tests.stand_ins.ledger_provider.wire import (
    Answer,
    AwaitAlone,
    AwaitFlight,
    Behave,
    Conduct,
    Message,
    Reply,
    Request,
    Send,
    frame,
    read_frame,
    wait_of,
)

ACCEPTED = 202
TOO_MANY = 429
UNAVAILABLE = 503


def now() -> Instant:
    return Instant(time.time_ns() // 1000)


class GroupedFile:
    """A file of JSON lines; `keep` returns when the line is on disk. What arrives during one fsync shares the next."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_line(path)
        self._file = path.open("ab", buffering=0)
        self._lines = bytearray()
        self._kept: asyncio.Future[None] | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def keep(self, entries: Sequence[Struct]) -> None:
        self._lines += b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        if self._kept is None:
            self._kept = asyncio.get_running_loop().create_future()
        kept = self._kept
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep_groups())
        await asyncio.shield(kept)

    async def _keep_groups(self) -> None:
        while self._kept is not None:
            group, self._lines = bytes(self._lines), bytearray()
            kept, self._kept = self._kept, None
            await asyncio.to_thread(self._write, group)
            kept.set_result(None)
        self._keeping = None

    def _write(self, group: bytes) -> None:
        try:
            if os.write(self._file.fileno(), group) != len(group):
                raise OSError("short write")
            os.fsync(self._file.fileno())
        except OSError as error:
            # A provider that cannot keep its promise must not make another one.
            print(f"the ledger cannot be written: {error}", file=sys.stderr, flush=True)
            os._exit(1)


class Provider:
    def __init__(self, ledger: Path, seed: int = 0) -> None:
        self._ledger = GroupedFile(ledger)
        self._requests = requests_path(ledger).open("ab", buffering=0)
        self._chance = random.Random(seed)
        self._conduct = Conduct()
        self._open = 0
        self._in_hand: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request, until either side has enough."""
        self._open += 1
        try:
            while True:
                request: Request = await read_frame(reader, Request)  # type: ignore[arg-type]
                match request:
                    case Behave(conduct):
                        self._conduct = conduct
                        writer.write(frame(Reply(now())))
                    case Send(messages):
                        await self._take_in_hand(messages, reader, writer)
                    case AwaitAlone():
                        await self._wait_for(lambda: self._open == 1)
                        writer.write(frame(Reply(now())))
                    case AwaitFlight(sender):
                        await self._wait_for(lambda: self._in_hand[sender] > 0)
                        writer.write(frame(Reply(now())))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._open -= 1
            await self._tell()

    async def _wait_for(self, is_so: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(is_so)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _take_in_hand(
        self, messages: list[Message], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        senders = {message.sender for message in messages}
        self._in_hand.update(senders)
        try:
            await self._tell()
            await self._serve(messages, reader, writer)
        finally:
            self._in_hand.subtract(senders)

    async def _serve(self, messages: list[Message], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = SeenRequest(now(), len(messages))
        conduct = self._conduct_towards(messages)
        await asyncio.sleep(conduct.delay.total_seconds())
        if conduct.is_hanging:
            self._note(seen)
            await reader.read()
            return
        reply = self._limited(conduct, messages) if conduct.is_limiting else await self._taken(conduct, messages)
        if conduct.is_dropping:
            self._note(seen)
            writer.transport.abort()
            return
        wait = wait_of(reply.answers[0].retry_after, reply.date) if conduct.is_limiting else None
        until = None if wait is None else plus(reply.date, wait)
        self._note(replace(seen, answered_at=reply.date, wait_until=until))
        writer.write(frame(reply))

    def _conduct_towards(self, messages: list[Message]) -> Conduct:
        conduct = self._conduct
        if not any(conduct.concerns(message.user_id) for message in messages):
            return Conduct()
        if conduct.requests is not None:
            left = conduct.requests - 1
            self._conduct = replace(conduct, requests=left) if left > 0 else Conduct()
        return conduct

    def _limited(self, conduct: Conduct, messages: list[Message]) -> Reply:
        date = now()
        after = conduct.retry_after
        if conduct.http_date_in is not None:
            # An HTTP date has whole seconds: the next one, so that the wait is never shorter than it was set.
            ahead = moment_of(plus(date, conduct.http_date_in + timedelta(seconds=1)))
            after = format_datetime(ahead.replace(microsecond=0), usegmt=True)
        return Reply(date, [Answer(TOO_MANY, retry_after=after)] * len(messages))

    async def _taken(self, conduct: Conduct, messages: list[Message]) -> Reply:
        statuses = [self._status(conduct, message) for message in messages]
        taken = [message for message, status in zip(messages, statuses, strict=True) if status == ACCEPTED]
        date = now()
        if taken:
            await self._ledger.keep([_entry(message, date) for message in taken])
        answers = [
            Answer(status, _message_id(message) if status == ACCEPTED else "")
            for message, status in zip(messages, statuses, strict=True)
        ]
        return Reply(date, answers)

    def _status(self, conduct: Conduct, message: Message) -> int:
        if not conduct.concerns(message.user_id):
            return ACCEPTED
        if self._chance.random() < conduct.error_share:
            return UNAVAILABLE
        return conduct.status

    def _note(self, seen: SeenRequest) -> None:
        self._requests.write(msgspec.json.encode(seen) + b"\n")


def _entry(message: Message, at: Instant) -> TakenMessage:
    return TakenMessage(
        at, message.key, message.user_id, message.channel, message.content_hash, message.number, message.sender
    )


def _message_id(message: Message) -> str:
    return f"{show(message.key.notification_id)}-{message.key.endpoint_id}-{message.number}"


async def serve(ledger: Path, port: int, *, is_bound_to_parent: bool) -> None:
    server = await asyncio.start_server(Provider(ledger).converse, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    if is_bound_to_parent:
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input ends")
    wanted = parser.parse_args()
    asyncio.run(serve(wanted.ledger, wanted.port, is_bound_to_parent=wanted.with_parent))


if __name__ == "__main__":
    main()
