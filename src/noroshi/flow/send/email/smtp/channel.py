"""E-mail over SMTP as a channel: attempts in; letters over pooled connections, and the relay's answer to each, out."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome, Rejected, Retry, Scope, Unknown
from noroshi.domain.priorities import Priority
from noroshi.flow.send.email.smtp.addresses import read_address
from noroshi.flow.send.email.smtp.bundle import Bundle
from noroshi.flow.send.email.smtp.enclosures import Enclosures
from noroshi.flow.send.email.smtp.opening import Opener, RefusedError
from noroshi.flow.send.email.smtp.outcomes import ReplyJudge, is_account_wide
from noroshi.flow.send.email.smtp.payload import Letter, Letterhead
from noroshi.flow.send.email.smtp.pool import Pool
from noroshi.flow.send.email.smtp.session import GoodbyeError, Session
from noroshi.flow.send.email.smtp.settings import SmtpSettings, read_settings
from noroshi.flow.send.email.smtp.shelf import Batch, Shelf, batch_of_attempt, portions
from noroshi.flow.send.email.smtp.wire import BrokenError
from noroshi.flow.send.parts import Off, Parts
from noroshi.ports.attachments import Attachments
from noroshi.ports.clock import Clock

CONNECTION_LOST = "CONNECTION_LOST"
UNREAD = "ATTACHMENTS_UNREAD"
FORGOTTEN = "ATTACHMENTS_FORGOTTEN"

_MAX_BATCH = 100
_LETTERS_A_CONNECTION = 25
_PATIENCE = 0.9
"""Of the attempt's time: dispatch would call all of a late batch unknown, we know which letters have not begun."""
_MOST_FRUITLESS = 2
_RANKS = {priority: rank for rank, priority in enumerate(Priority)}

_log = structlog.get_logger(__name__)


class SmtpChannel:
    account = "smtp"
    channels = frozenset({"email"})
    max_batch = _MAX_BATCH

    def __init__(self, settings: SmtpSettings, clock: Clock, attachments: Attachments) -> None:
        self._settings = settings
        self._shelf = Shelf(attachments)
        self._clock = clock
        self._pool = Pool(Opener(settings, ReplyJudge()).open, settings.connections, clock)

    @property
    def attempt_timeout(self) -> timedelta:
        return self._settings.timeout

    @property
    def per_second(self) -> int | None:
        return self._settings.per_second

    def validate_target(self, address: str) -> str | None:
        return None if read_address(address) is not None else "must be a plain e-mail address, local@domain"

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        until = self._clock.monotonic() + self._settings.timeout.total_seconds() * _PATIENCE
        outcomes: list[Outcome] = []
        for portion in portions(attempts):
            obstacle = next(filter(is_account_wide, outcomes), None)
            outcomes += await self._send(portion, until) if obstacle is None else [obstacle] * len(portion)
        return outcomes

    async def _send(self, attempts: Sequence[Attempt], until: float) -> list[Outcome]:
        head = Letterhead(self._settings.sender, self._settings.reply_to, self._clock.now())
        rank = min((_RANKS[attempt.lane.priority] for attempt in attempts), default=0)
        try:
            enclosed = await self._shelf.fetch(attempts)
        except Exception as error:  # noqa: BLE001 - nothing was sent: it can be said for sure, and is tried again
            _log.error("attachments_unread", account=self.account, error=type(error).__name__)
            return [Retry(UNREAD, "the attachments could not be read", scope=Scope.ACCOUNT)] * len(attempts)
        letters = [_letter(head, place, attempt, enclosed) for place, attempt in enumerate(attempts)]
        bundle = Bundle(letters, lambda: not self._pool.is_wanted(rank))
        if bundle.left:
            await self._carry(bundle, rank, until)
        return bundle.outcomes()

    async def close(self) -> None:
        await self._pool.close()

    async def _carry(self, bundle: Bundle, rank: int, until: float) -> None:
        """Until everything is answered or the time is up."""
        carrying = asyncio.create_task(self._carry_all(bundle, rank))
        alarm = asyncio.create_task(self._clock.sleep(timedelta(seconds=max(until - self._clock.monotonic(), 0))))
        try:
            await asyncio.wait((carrying, alarm), return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            carrying.cancel()
            await asyncio.gather(alarm, carrying, return_exceptions=True)
        if not carrying.cancelled() and (error := carrying.exception()) is not None:
            # What was answered is known; the rest is in doubt or not begun.
            _log.error("send_failed", account=self.account, error=type(error).__name__)

    async def _carry_all(self, bundle: Bundle, rank: int) -> None:
        """Over more connections if there are many letters and connections to spare, once the first is there."""
        has_begun = asyncio.Event()
        more = -(-bundle.left // _LETTERS_A_CONNECTION) - 1
        async with asyncio.TaskGroup() as carriers:
            for _ in range(more):
                carriers.create_task(self._help(bundle, rank, has_begun))
            await self._carry_some(bundle, rank, has_begun)
            has_begun.set()

    async def _help(self, bundle: Bundle, rank: int, has_begun: asyncio.Event) -> None:
        await has_begun.wait()
        if self._pool.has_room:
            await self._carry_some(bundle, rank, has_begun)

    async def _carry_some(self, bundle: Bundle, rank: int, has_begun: asyncio.Event) -> None:
        """Over one connection after another: one that breaks or is closed costs no letter that it had not begun."""
        fruitless = 0
        while bundle.left and fruitless < _MOST_FRUITLESS:
            try:
                session = await self._pool.lend(rank)
            except RefusedError as error:
                bundle.excuse = error.outcome
                return
            has_begun.set()
            before = session.finished
            trouble = await self._use(session, bundle)
            fruitless = fruitless + 1 if session.finished == before else 0
            bundle.excuse = trouble or bundle.excuse

    async def _use(self, session: Session, bundle: Bundle) -> Outcome | None:
        """Why the connection is no more, or None."""
        try:
            await session.carry(bundle)
        except BrokenError as error:
            self._pool.drop(session)
            _sort_out(session, bundle, str(error))
            return Retry(CONNECTION_LOST, str(error), scope=Scope.ACCOUNT)
        except GoodbyeError as error:
            self._pool.drop(session)
            for letter in reversed(session.underway):
                bundle.put_back(letter)
            return error.outcome
        except BaseException:
            self._pool.drop(session)
            raise
        self._pool.take_back(session)
        return None


def _letter(head: Letterhead, place: int, attempt: Attempt, enclosed: dict[Batch, Enclosures]) -> Letter | Rejected:
    enclosures = enclosed.get(batch_of_attempt(attempt)) if attempt.attachments else None
    if attempt.attachments and enclosures is None:
        return Rejected(FORGOTTEN, "the attachments of the batch are no longer kept")
    return head.letter(place, attempt, enclosures)


def _sort_out(session: Session, bundle: Bundle, why: str) -> None:
    """The connection broke. The letter whose content was on its way is in doubt, and is the suspect; one that was only
    announced is taken up again, unless it alone was all that this connection ever saw."""
    has_suspect = any(letter.is_out for letter in session.underway)
    for letter in reversed(session.underway):
        if letter.is_out:
            bundle.answer(letter, Unknown(CONNECTION_LOST, why))
        elif has_suspect or session.finished:
            bundle.put_back(letter)
        else:
            bundle.answer(letter, Retry(CONNECTION_LOST, why))


def open_smtp(parts: Parts) -> SmtpChannel | Off:
    settings = read_settings(parts.values)
    return settings if isinstance(settings, Off) else SmtpChannel(settings, parts.clock, parts.attachments)
