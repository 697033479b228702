"""Passes at the gate: a caller and a person in, a token or ticket out; one of these in, the person it opens for out."""

from datetime import timedelta

from noroshi.domain.instants import Instant, plus
from noroshi.domain.passes import (
    NONCE_BITS,
    TICKET_LIVES,
    TOKEN_LIVES,
    Pass,
    PassKind,
    passes_secret,
    read_pass,
    sign,
)
from noroshi.domain.requests import Caller
from noroshi.flow.accept.gate import Gate, Pace, too_fast, unauthorized
from noroshi.ports.clock import Clock
from noroshi.ports.dice import Dice
from noroshi.ports.tickets import Tickets

PER_MINUTE = 600
"""Calls of one person: a page that goes wild in one browser must not be felt by the others."""

_PACED_AT_MOST = 10_000


class Passes:
    """What it gives opens the routes of one person; the caller it answers with has that person's id and no scope."""

    def __init__(self, gate: Gate, pepper: bytes, tickets: Tickets, clock: Clock, dice: Dice) -> None:
        self._gate = gate
        self._secret = passes_secret(pepper)
        self._tickets = tickets
        self._clock = clock
        self._dice = dice
        self._paces: dict[tuple[int, str], Pace] = {}

    def issue_token(self, caller: Caller, user_id: str, lives: timedelta) -> tuple[str, Instant]:
        expires_at = plus(self._clock.now(), min(lives, TOKEN_LIVES))
        token = Pass(caller.tenant, user_id, caller.key_id, expires_at, expires_at)
        return sign(self._secret, PassKind.TOKEN, token), expires_at

    def issue_ticket(self, caller: Caller, user_id: str) -> tuple[str, Instant]:
        """For a stream that ends with the pass of whoever asks, and in any case within an hour."""
        now = self._clock.now()
        expires_at, until = plus(now, TICKET_LIVES), caller.until or plus(now, TOKEN_LIVES)
        nonce = self._dice.bits(NONCE_BITS).to_bytes(NONCE_BITS // 8, "big")
        ticket = Pass(caller.tenant, user_id, caller.key_id, expires_at, until, nonce)
        return sign(self._secret, PassKind.TICKET, ticket), expires_at

    async def authenticate(self, token: str) -> Caller:
        """Raises `unauthorized` or `too_many_requests`."""
        found = self._read(PassKind.TOKEN, token)
        caller = await self._caller(found)
        self._count(found)
        return caller

    async def admit(self, ticket: str) -> Caller:
        """Uses the ticket up. Raises `unauthorized`."""
        found = self._read(PassKind.TICKET, ticket)
        caller = await self._caller(found)
        if not await self._tickets.spend(found.tenant, found.nonce, found.expires_at):
            raise unauthorized("The ticket was used before: ask for another.")
        return caller

    def _read(self, kind: PassKind, text: str) -> Pass:
        found = read_pass(self._secret, kind, text)
        if found is None or found.expires_at <= self._clock.now():
            raise unauthorized(f"The {kind.name.lower()} is wrong or has expired: ask for another.")
        return found

    async def _caller(self, found: Pass) -> Caller:
        by = await self._gate.live_key(found.key_id)
        if by is None or by.tenant != found.tenant:
            raise unauthorized("The key that this was given with is no longer valid.")
        return Caller(
            tenant=found.tenant,
            key_id=found.key_id,
            name=by.name,
            scopes=frozenset(),
            user_id=found.user_id,
            until=found.until,
        )

    def _count(self, found: Pass) -> None:
        who = (found.tenant, found.user_id)
        pace = self._paces.pop(who, None) or Pace(PER_MINUTE)
        self._paces[who] = pace
        if len(self._paces) > _PACED_AT_MOST:
            del self._paces[next(iter(self._paces))]
        now = self._clock.monotonic()
        if wait := pace.admit(now):
            raise too_fast("A person", pace, wait, now)
