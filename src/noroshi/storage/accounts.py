"""Accounts in the store: what a lane asks of its account in, what all processes together grant it out."""

from datetime import timedelta

from msgspec import Struct
from msgspec.structs import astuple, replace

from noroshi.domain.accounts import OPEN_FOR, BreakerState, Terms
from noroshi.domain.instants import Instant, plus
from noroshi.domain.pacing import spacing_of
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

_MICROSECOND = timedelta(microseconds=1)
_NO_SPAN = timedelta(0)
_CLOSED = 0


class _Account(Struct, frozen=True):
    """A row, in the order of its columns."""

    epoch: int = 0
    open_until: int = _CLOSED
    trial_until: int = 0
    full_at: int = 0

    @property
    def is_closed(self) -> bool:
        return self.open_until == _CLOSED

    def is_on_trial(self, now: Instant) -> bool:
        return not self.is_closed and max(self.open_until, self.trial_until) <= now

    def state(self, now: Instant) -> BreakerState:
        if self.is_closed:
            return BreakerState(self.epoch, None)
        until = max(self.open_until, self.trial_until)
        return BreakerState(self.epoch, min(max(until - now, 0) * _MICROSECOND, OPEN_FOR))


class Grant(Struct, frozen=True):
    """How many may be claimed, and what `Taken` says of it."""

    count: int
    wait: timedelta = _NO_SPAN
    breaker: BreakerState | None = None


async def ask_account(turn: Turn, account: str, terms: Terms, wanted: int, lease: timedelta) -> Grant:
    """Leave to claim, for all processes together: the account's row is held until the commit. Terms without pace and
    trial never get here with a question, and cost nothing."""
    if terms.is_free or not wanted:
        return Grant(wanted)
    found, now = await _hold(turn, account)
    believed = _believable(found, terms, now, lease)
    granted, changed = _decide(believed, terms, wanted, now, lease)
    if changed != found:
        await turn.run("write_account", account, *astuple(changed))
    return granted


async def _hold(turn: Turn, account: str) -> tuple[_Account, Instant]:
    """The row, and the time at which we got it: that of the turn's beginning may be older than what others wrote."""
    row = await turn.one("hold_account", account)
    if row is None:
        await turn.run("add_account", account)
        row = await turn.one("hold_account", account)
    return _Account(*(row or ())), await turn.moment()


def _believable(account: _Account, terms: Terms, now: Instant, lease: timedelta) -> _Account:
    """Times further ahead than anybody writes them are those of a clock that jumped (W30)."""
    full_at = account.full_at
    return replace(
        account,
        open_until=min(account.open_until, plus(now, OPEN_FOR)),
        trial_until=min(account.trial_until, plus(now, max(lease, OPEN_FOR))),
        full_at=full_at if terms.per_second is None else spacing_of(terms.per_second).believable(full_at, now),
    )


def _decide(account: _Account, terms: Terms, wanted: int, now: Instant, lease: timedelta) -> tuple[Grant, _Account]:
    if account.epoch < terms.epoch:  # the asker's last move was never written
        account = replace(account, epoch=terms.epoch, open_until=now if terms.is_trial else _CLOSED, trial_until=0)
    may_go = account.is_on_trial(now) if terms.is_trial else account.is_closed
    if account.epoch > terms.epoch or not may_go:
        return Grant(0, breaker=account.state(now)), account
    wait, count = 0, 1 if terms.is_trial else wanted
    if terms.per_second is not None:
        spacing = spacing_of(terms.per_second)
        if wait := spacing.wait(account.full_at, now):
            return Grant(0, wait * _MICROSECOND), account
        count = min(count, spacing.burst)
        go_at, full_at = spacing.reserve(account.full_at, count, now)
        wait, account = go_at - now, replace(account, full_at=full_at)
    if terms.is_trial:
        account = replace(account, trial_until=plus(now, lease))
    return Grant(count, wait * _MICROSECOND), account


class StoredAccounts:
    """Implements ports/accounts.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def block(self, account: str, until: Instant, why: str) -> None:
        await self._turns.turn(
            "block_account", lambda turn: turn.run("block_account", account, until, why), is_urgent=True
        )

    async def blocked(self) -> dict[str, Instant]:
        async def read(reader: Statements) -> list[Row]:
            return await reader.rows("blocked_accounts", await reader.moment())

        return {account: Instant(until) for account, until in await self._readings.read(read)}

    async def move_breaker(self, account: str, epoch: int, open_for: timedelta | None) -> BreakerState:
        async def work(turn: Turn) -> BreakerState:
            found, now = await _hold(turn, account)
            if found.epoch < epoch:
                open_until = _CLOSED if open_for is None else plus(now, open_for)
                found = replace(found, epoch=epoch, open_until=open_until, trial_until=0)
                await turn.run("write_account", account, *astuple(found))
            return found.state(now)

        return await self._turns.turn("move_breaker", work, is_urgent=True)

    async def breakers(self) -> dict[str, BreakerState]:
        async def read(reader: Statements) -> dict[str, BreakerState]:
            now = await reader.moment()
            rows = await reader.rows("moved_breakers")
            return {row[0]: _Account(*row[1:]).state(now) for row in rows}

        return await self._readings.read(read)

    async def end_trial(self, account: str, epoch: int) -> None:
        await self._turns.turn("end_trial", lambda turn: turn.run("end_trial", account, epoch), is_urgent=True)
