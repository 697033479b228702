"""The Channel port over the ledger provider's socket: attempts in, what the provider answered out.

The product loads it by NOROSHI_CHANNELS="tests.stand_ins.ledger_provider.channel:factory"; LEDGER_PROVIDER_PORT says
where the provider listens; LEDGER_PROVIDER_MAX_BATCH, LEDGER_PROVIDER_TIMEOUT (seconds), LEDGER_PROVIDER_PER_SECOND
and LEDGER_PROVIDER_SENDER (what the ledger calls this life) may be set.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from noroshi.domain.deliveries import Attempt
from noroshi.domain.instants import Instant
from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from tests.stand_ins.ledger_provider.wire import Answer, Message, Reply, Send, content_hash, frame, read_frame, wait_of

MOST_IDLE = 64


class Connection(Struct):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()


class LedgerChannel:
    """Keeps its connections; a call takes one that is idle or opens another. Time-outs are the caller's:
    a call that is cancelled closes its connection, since an answer might still be on its way."""

    account = "ledger"
    channels = frozenset({"email", "sms"})

    def __init__(
        self,
        port: int,
        max_batch: int = 100,
        attempt_timeout: timedelta = timedelta(seconds=10),
        per_second: int | None = None,
        sender: str = "",
    ) -> None:
        self.max_batch = max_batch
        self.attempt_timeout = attempt_timeout
        self.per_second = per_second
        self._sender = sender
        self._port = port
        self._idle: list[Connection] = []

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        try:
            connection = await self._connect()
        except OSError as error:
            return [Retry("PROVIDER_ERROR", f"no connection: {error}")] * len(attempts)
        try:
            connection.writer.write(frame(Send([_message(attempt, self._sender) for attempt in attempts])))
            await connection.writer.drain()
            reply = await read_frame(connection.reader, Reply)
        except (OSError, asyncio.IncompleteReadError):
            connection.writer.close()
            return [Unknown(error="the connection was lost after the request left")] * len(attempts)
        except BaseException:
            connection.writer.close()
            raise
        self._keep(connection)
        return [outcome_of(answer, reply.date) for answer in reply.answers]

    def validate_target(self, address: str) -> str | None:
        return None if address else "the address is empty"

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().writer.close()

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.writer.close()
        return Connection(*await asyncio.open_connection("127.0.0.1", self._port))

    def _keep(self, connection: Connection) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.writer.close()


def outcome_of(answer: Answer, date: Instant) -> Outcome:
    match answer.status:
        case 202:
            return Sent(answer.message_id)
        case 410:
            return Gone("INVALID_TOKEN")
        case 401 | 403:
            return Misconfigured("UNAUTHORISED")
        case 429:
            return Retry("PROVIDER_ERROR", "429", wait_of(answer.retry_after, date), Scope.ACCOUNT)
        case status if status >= 500:
            return Retry("PROVIDER_ERROR", str(status))
        case status:
            return Rejected("REJECTED", str(status))


def _message(attempt: Attempt, sender: str) -> Message:
    return Message(
        attempt.key,
        attempt.recipient.user_id,
        attempt.lane.channel,
        content_hash(attempt.content),
        attempt.number,
        sender,
    )


def factory(_parts: object) -> LedgerChannel:
    return LedgerChannel(
        port=int(os.environ["LEDGER_PROVIDER_PORT"]),
        max_batch=int(os.environ.get("LEDGER_PROVIDER_MAX_BATCH", "100")),
        attempt_timeout=timedelta(seconds=float(os.environ.get("LEDGER_PROVIDER_TIMEOUT", "10"))),
        per_second=int(os.environ.get("LEDGER_PROVIDER_PER_SECOND", "0")) or None,
        sender=os.environ.get("LEDGER_PROVIDER_SENDER", ""),
    )
