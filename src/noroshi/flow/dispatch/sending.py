"""One flight's way: claims of one lane go in, are composed and sent in one call, and come out judged."""

from collections.abc import Coroutine, Sequence
from datetime import timedelta
from itertools import compress
from typing import Any, TypeVar

import structlog

from noroshi.domain.accounts import BreakerState
from noroshi.domain.attachments import CARRIED_BY
from noroshi.domain.deliveries import Attempt, Claim, Settlement
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Kept, Misconfigured, Outcome, Sent, Unknown
from noroshi.domain.records import Alert
from noroshi.domain.templates import Content, RenderFailure
from noroshi.flow.dispatch.alarms import ACCOUNT_MISCONFIGURED, WARNING, Judged
from noroshi.flow.dispatch.flights import Flight
from noroshi.flow.dispatch.gates import Gate, tick_of
from noroshi.flow.dispatch.judge import (
    is_failure,
    judge,
    judge_doubt,
    judge_mishap,
    judge_unsent,
    release,
    rest_after,
)
from noroshi.flow.dispatch.kit import Kit
from noroshi.flow.dispatch.waiting import LateError, signalled, within
from noroshi.ports.channel import Channel, RepeatingChannel

TIMEOUT = "TIMEOUT"
PROVIDER_ERROR = "PROVIDER_ERROR"
NO_ANSWER = "NO_ANSWER"

_MICROSECOND = timedelta(microseconds=1)

T = TypeVar("T")

_log = structlog.get_logger(__name__)

Composed = tuple[Claim, Content | RenderFailure]


class Sending:
    """Carries the flights of one lane to its channel."""

    def __init__(self, lane: Lane, channel: Channel, gate: Gate, kit: Kit) -> None:
        self._lane = lane
        self._channel = channel
        self._gate = gate
        self._kit = kit
        self._account = channel.account
        self._repeats = repeats_of(channel)
        self._before = f"send.{channel.account}.before"
        self._after = f"send.{channel.account}.after"

    async def carry(self, flight: Flight) -> tuple[list[Judged], list[Alert]]:
        """What became of each claim, but for those lost to another; and the alerts the account raised. Raises
        ComposeError if nothing could be composed."""
        judged: list[Judged] = []
        alerts: list[Alert] = []
        is_loop_gone = False
        try:
            composed = await self._compose(flight, judged)
            await self._keep_pace(flight, composed)
            attempts, claims = self._prepare(flight, composed, judged)
            if attempts:
                await self._send(flight, attempts, claims, judged, alerts)
        except GeneratorExit:
            is_loop_gone = True
            raise
        finally:
            if self._gate.give_back(flight.permit) and not is_loop_gone:
                await self._try("end_trial_failed", self._kit.accounts.end_trial(self._account, flight.permit.epoch))
        return judged, alerts

    def learn_breaker(self, state: BreakerState) -> None:
        """How the breaker stands by the account's row."""
        if self._gate.learn(state):
            self._show_breaker()

    def judge_mishap(self, flight: Flight) -> list[Judged]:
        """What becomes of a flight that could not be composed."""
        now, dice = self._kit.clock.now(), self._kit.dice
        return [_judged(c, judge_mishap(c, now, dice.fraction())) for c in flight.claims if c.key not in flight.lost]

    async def _compose(self, flight: Flight, judged: list[Judged]) -> list[Composed]:
        if obstacle := self._obstacle(flight):
            now = self._kit.clock.now()
            judged += [_judged(c, judge_unsent(c, None, now) or release(c, now, obstacle)) for c in flight.claims]
            return []
        composed: list[Composed] = []
        for claim, result in zip(flight.claims, await flight.compose(), strict=True):
            if isinstance(result, Settlement):
                judged.append(_judged(claim, result))
            else:
                composed.append((claim, result))
        return composed

    async def _keep_pace(self, flight: Flight, composed: list[Composed]) -> None:
        """As all processes together were granted it, and spaced by what this one really does."""
        if not composed:
            return
        tick = tick_of(self._kit.clock)
        go_at = max(self._gate.pace.reserve(len(composed), tick), flight.go_at)
        if go_at > tick:
            await signalled(self._kit.closing, self._kit.clock, (go_at - tick) * _MICROSECOND)

    def _prepare(
        self, flight: Flight, composed: list[Composed], judged: list[Judged]
    ) -> tuple[list[Attempt], list[Claim]]:
        """Asked last, right before the send: everything before it takes time in which the world may change."""
        kit, now = self._kit, self._kit.clock.now()
        obstacle = self._obstacle(flight)
        paused = kit.stops.categories
        attempts: list[Attempt] = []
        claims: list[Claim] = []
        for claim, content in composed:
            if claim.key in flight.lost:
                continue
            settlement = judge_unsent(claim, content, now) or judge_doubt(claim, now, kit.categories, self._repeats)
            if settlement is None and (obstacle or claim.category in paused):
                settlement = release(claim, now, obstacle or "paused")
            if settlement is not None:
                judged.append(_judged(claim, settlement))
            elif isinstance(content, Content):
                attempts.append(_attempt(claim, content))
                claims.append(claim)
        return attempts, claims

    def _obstacle(self, flight: Flight) -> str | None:
        """Why nothing of the flight may be sent any more: all of these use up no try."""
        kit = self._kit
        if kit.closing.is_set():
            return "closing"
        if kit.stops.stop(self._lane):
            return "paused"
        if not self._gate.holds(flight.permit):
            return "account_resting"
        if kit.clock.monotonic() >= flight.deadline:
            return "lease_over"
        return None

    async def _send(
        self, flight: Flight, attempts: list[Attempt], claims: list[Claim], judged: list[Judged], alerts: list[Alert]
    ) -> None:
        kit = self._kit
        started_at = kit.clock.now()
        outcomes, is_answered = await self._attempt(attempts)
        now = kit.clock.now()
        failures = [is_failure(o) for o in outcomes]
        kit.settler.rates.attempted(self._channel.account, len(outcomes), sum(failures))
        if self._gate.record(flight.permit, _counted(outcomes, failures) if is_answered else failures[:1]):
            await self._share_breaker()
        for claim, outcome in zip(claims, outcomes, strict=True):
            fraction = 0.0 if isinstance(outcome, Sent | Kept) else kit.dice.fraction()
            settlement = judge(claim, outcome, now, fraction, kit.categories, started_at, self._repeats)
            judged.append(_judged(claim, settlement))
        if any(failures):
            failed = list(compress(outcomes, failures))
            kit.meter.count("provider_errors_total", len(failed), provider=self._channel.account)
            if unknown := sum(isinstance(o, Unknown) for o in failed):
                kit.meter.count("provider_unknown_total", unknown, provider=self._channel.account)
            await self._rest_account(failed, now, alerts)

    async def _attempt(self, attempts: list[Attempt]) -> tuple[list[Outcome], bool]:
        """The outcomes in the order of the attempts, and whether the call was answered at all."""
        kit, account, count = self._kit, self._channel.account, len(attempts)
        began = kit.clock.monotonic()
        kit.crash_points.reach(self._before)
        kit.flights.sending += count
        try:
            outcomes = list(await within(kit.clock, self._channel.attempt_timeout, _answers(self._channel, attempts)))
            is_answered = True
        except LateError:
            _log.warning("send_timed_out", account=account, messages=count)
            outcomes, is_answered = [Unknown(TIMEOUT)] * count, False
        except Exception as error:  # noqa: BLE001 - whatever broke, each claim gets a verdict
            # The type alone: an exception's text may quote an address.
            _log.error("send_failed", account=account, messages=count, error=type(error).__name__)
            outcomes, is_answered = [Unknown(PROVIDER_ERROR, type(error).__name__)] * count, False
        finally:
            kit.flights.sending -= count
        kit.crash_points.reach(self._after)
        kit.meter.observe("provider_api_latency", kit.clock.monotonic() - began, provider=account)
        kit.meter.count("provider_attempts_total", count, provider=account)
        outcomes.extend([Unknown(NO_ANSWER)] * (count - len(outcomes)))
        return outcomes[:count], is_answered

    async def _rest_account(self, failed: list[Outcome], now: Instant, alerts: list[Alert]) -> None:
        """Kept before the claims go back to the lane: a restart in between must not forget the rest."""
        longest = max(filter(None, map(rest_after, failed)), default=None)
        if longest is None:
            return
        account = self._channel.account
        wrong = next((o for o in failed if isinstance(o, Misconfigured)), None)
        if wrong is not None:
            alerts.append(Alert(ACCOUNT_MISCONFIGURED, WARNING, f"{account}:{wrong.code}"))
        until = plus(now, longest)
        self._gate.rest(until)
        why = wrong.code if wrong is not None else "retry_after"
        await self._try("block_failed", self._kit.accounts.block(account, until, why))
        self._kit.tell_change()

    async def _share_breaker(self) -> None:
        """Kept before the claims go back to the lane, as a rest is: other processes must not run into it."""
        self._show_breaker()
        gate = self._gate
        state = await self._try(
            "breaker_failed", self._kit.accounts.move_breaker(self._account, gate.epoch, gate.opens_for)
        )
        if state is not None:
            self.learn_breaker(state)
        self._kit.tell_change()

    def _show_breaker(self) -> None:
        self._kit.meter.gauge("provider_breaker_open", float(self._gate.is_broken), provider=self._account)

    async def _try(self, failure: str, work: Coroutine[Any, Any, T]) -> T | None:
        """A store that fails here costs a line in the log: whatever broke, each claim gets a verdict."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - as said
            self._kit.meter.count("dispatch_errors_total", lane=self._lane.name)
            _log.error(failure, account=self._account, error=type(error).__name__)
            return None


def repeats_of(channel: Channel) -> timedelta:
    """For how long its provider knows a delivery again: mostly not at all."""
    return channel.repeats_within if isinstance(channel, RepeatingChannel) else timedelta(0)


async def _answers(channel: Channel, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
    return await channel.send(attempts)


def _counted(outcomes: list[Outcome], failures: list[bool]) -> list[bool]:
    """What the breaker counts. An answer about the whole account is one failure, and so is silence, as a call that
    failed as a whole is: a batch must not open the breaker by its size, nor make a rest of one second one of sixty."""
    are_wide = [isinstance(o, Unknown) or rest_after(o) is not None for o in outcomes]
    if sum(are_wide) < 2:
        return failures
    first = are_wide.index(True)
    return [failures[n] for n, is_wide in enumerate(are_wide) if not is_wide or n == first]


def _judged(claim: Claim, settlement: Settlement) -> Judged:
    return Judged(settlement, claim.lane, claim.tries, claim.wanted_at)


def _attempt(claim: Claim, content: Content) -> Attempt:
    return Attempt(
        claim.key,
        claim.lane,
        claim.category,
        claim.recipient,
        claim.address,
        content,
        claim.tries + 1,
        claim.expires_at,
        claim.attachments if claim.lane.channel in CARRIED_BY else (),
    )
