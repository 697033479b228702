"""Judging: a claim and what became of it go in, the settlement that ends or continues the delivery comes out."""

from collections.abc import Container
from datetime import timedelta

from noroshi.domain.categories import Categories, OnUnknown
from noroshi.domain.channels import CHANNELS, NO_ENDPOINT, Needs, RetryPolicy
from noroshi.domain.deliveries import Claim, Expired, Settlement, Verdict
from noroshi.domain.instants import Instant, plus
from noroshi.domain.outcomes import Gone, Kept, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.reasons import Reason
from noroshi.domain.retries import retry_delay
from noroshi.domain.templates import Content, RenderFailure

OUTCOME_UNKNOWN = "outcome_unknown"
POISON = "poison"
COMPOSE_ERROR = "COMPOSE_ERROR"

MOST_CLAIMS = 7
"""Claims without an outcome before a delivery is given up: two in company, then five alone (W27)."""

LONGEST_REST = timedelta(hours=1)
"""No provider may make us wait longer, whatever its Retry-After says (F13)."""

_ACCOUNT_REST = timedelta(seconds=30)
_MISCONFIGURED_REST = timedelta(minutes=5)
_OTHER_RETRY = RetryPolicy(3, timedelta(seconds=1), timedelta(seconds=60), 2)
_MISHAP_RETRY = RetryPolicy(MOST_CLAIMS, timedelta(seconds=5), timedelta(minutes=5), 3)
_LONGEST_ERROR = 500
_NO_SPAN = timedelta(0)


def judge(
    claim: Claim,
    outcome: Outcome,
    now: Instant,
    fraction: float,
    categories: Categories,
    started_at: Instant,
    repeats: timedelta = _NO_SPAN,
) -> Settlement:
    """What the outcome of an attempt means. `fraction` in [0, 1) spreads the retries; `repeats` is for how long the
    provider knows a delivery again."""
    match outcome:
        case Sent():
            return Settlement(claim.key, claim.fence, Verdict.SENT, now, started_at, None, outcome.message_id)
        case Kept():
            return Settlement(claim.key, claim.fence, Verdict.DELIVERED, now, started_at, draft=outcome.draft)
        case Retry(scope=Scope.ACCOUNT) | Misconfigured():
            return release(claim, now, outcome.code, outcome.error, started_at)
        case Retry():
            return _judge_failure(claim, outcome, now, fraction, categories, started_at)
        case Gone() | Rejected():
            return _dead(claim, now, outcome.code, outcome.error, started_at, is_gone=isinstance(outcome, Gone))
        case Unknown():
            if _gives_up(claim, now, categories, repeats):
                return _dead(claim, now, OUTCOME_UNKNOWN, f"{outcome.code} {outcome.error}".rstrip(), started_at)
            # `reconcile` needs a provider that can be asked; until one is built it is a resend.
            return _judge_failure(claim, outcome, now, fraction, categories, started_at)


def judge_unsent(claim: Claim, content: Content | RenderFailure | None, now: Instant) -> Settlement | None:
    """Why a claim must not be sent at all, asked right before the send; None if it may. `content` is None
    before it was composed."""
    if claim.is_cancelled:
        return _settlement(claim, Verdict.CANCELLED, now)
    if claim.expires_at is not None and claim.expires_at <= now:
        return _settlement(claim, Verdict.SUPPRESSED, now, code=Reason.EXPIRED)
    if not claim.address:
        return _dead(claim, now, _missing(claim.lane.channel), "the endpoint was removed meanwhile", None)
    if isinstance(content, RenderFailure):
        return _dead(claim, now, Reason.RENDER_ERROR, content.error, None)
    return None


def judge_doubt(claim: Claim, now: Instant, categories: Categories, repeats: timedelta) -> Settlement | None:
    """A delivery whose provider knew it again was tried in spite of what its category says of the unknown. Once the
    provider may have forgotten it (after a long pause, say), that holds again: it must not be sent; None if it may."""
    if repeats and (claim.tries or claim.claims > 1) and _gives_up(claim, now, categories, repeats):
        return _dead(claim, now, OUTCOME_UNKNOWN, "an earlier try may have been taken", None)
    return None


def _gives_up(of: Claim | Expired, now: Instant, categories: Categories, repeats: timedelta) -> bool:
    """Whether not to know is the end. No try is older than the moment from which the delivery was wanted."""
    return categories.named(of.category).on_unknown is OnUnknown.GIVE_UP and plus(of.wanted_at, repeats) <= now


def _missing(channel: str) -> str:
    """NO_EMAIL, NO_PHONE or NO_DEVICE (N1.9)."""
    kind = CHANNELS.get(channel)
    return NO_ENDPOINT[kind.needs if kind is not None else Needs.USER].upper()


def judge_mishap(claim: Claim, now: Instant, fraction: float) -> Settlement:
    """Composing broke down, which no template may cause. The claim counts as one without outcome, so the
    guilty delivery soon comes alone and cannot hold up its lane for ever (W27)."""
    if claim.claims >= MOST_CLAIMS:
        return _dead(claim, now, POISON, "composing broke down at every claim", None)
    if claim.is_cancelled:
        return _settlement(claim, Verdict.CANCELLED, now)
    due_at = plus(now, retry_delay(_MISHAP_RETRY, claim.claims - 1, fraction))
    return _settlement(claim, Verdict.RESEND, now, due_at=due_at, code=COMPOSE_ERROR)


def judge_expired(
    expired: Expired,
    now: Instant,
    categories: Categories,
    served: Container[tuple[str, str]],
    repeats: timedelta = _NO_SPAN,
) -> Settlement | None:
    """A lease that ended without an outcome is an Unknown. `served` holds the (channel, account) pairs this
    process knows; a delivery of any other is left alone (None)."""
    if (expired.lane.channel, expired.lane.account) not in served:
        return None
    if _gives_up(expired, now, categories, repeats):
        return _dead(expired, now, OUTCOME_UNKNOWN, "the lease ended without an outcome", None)
    if expired.claims >= MOST_CLAIMS:
        return _dead(expired, now, POISON, f"{expired.claims} claims ended without an outcome", None)
    if expired.expires_at is not None and expired.expires_at <= now:
        return _settlement(expired, Verdict.SUPPRESSED, now, code=Reason.EXPIRED)
    return _settlement(expired, Verdict.RESEND, now, due_at=now)


def release(
    claim: Claim, now: Instant, code: str = "", error: str = "", started_at: Instant | None = None
) -> Settlement:
    """Back to the lane, with nothing used up."""
    if claim.is_cancelled:
        return _settlement(claim, Verdict.CANCELLED, now, started_at)
    return _settlement(claim, Verdict.RELEASE, now, started_at, due_at=now, code=code, error=error)


def rest_after(outcome: Outcome) -> timedelta | None:
    """How long the account must be left alone after this answer; None: not at all."""
    if isinstance(outcome, Misconfigured):
        return _MISCONFIGURED_REST
    if isinstance(outcome, Retry) and outcome.scope is Scope.ACCOUNT:
        return _wished(outcome.after) or _ACCOUNT_REST
    return None


def is_failure(outcome: Outcome) -> bool:
    """Whether the breaker counts it: Rejected, Gone and what concerns the recipient are answers of a provider that
    works."""
    if isinstance(outcome, Retry):
        return outcome.scope is not Scope.RECIPIENT
    return isinstance(outcome, Unknown | Misconfigured)


def _judge_failure(
    claim: Claim, outcome: Retry | Unknown, now: Instant, fraction: float, categories: Categories, started_at: Instant
) -> Settlement:
    kind = CHANNELS.get(claim.lane.channel)
    policy = kind.retry if kind is not None else _OTHER_RETRY
    tries = categories.named(claim.category).tries
    sends = policy.retries + 1 if tries is None else tries
    if claim.tries + 1 >= sends:
        return _dead(claim, now, outcome.code, outcome.error, started_at)
    if claim.is_cancelled:
        return _settlement(claim, Verdict.CANCELLED, now, started_at)
    wished = _wished(outcome.after) if isinstance(outcome, Retry) else None
    due_at = plus(now, wished or retry_delay(policy, claim.tries, fraction))
    return _settlement(claim, Verdict.RETRY, now, started_at, due_at=due_at, code=outcome.code, error=outcome.error)


def _wished(after: timedelta | None) -> timedelta | None:
    """The provider's Retry-After if it makes sense: none and the past do not, and no more than an hour is obeyed."""
    if after is None or after <= _NO_SPAN:
        return None
    return min(after, LONGEST_REST)


def _dead(
    of: Claim | Expired, now: Instant, code: str, error: str, started_at: Instant | None, *, is_gone: bool = False
) -> Settlement:
    return _settlement(of, Verdict.DEAD, now, started_at, code=code, error=error, is_gone=is_gone)


def _settlement(
    of: Claim | Expired,
    verdict: Verdict,
    now: Instant,
    started_at: Instant | None = None,
    *,
    due_at: Instant | None = None,
    code: str = "",
    error: str = "",
    is_gone: bool = False,
) -> Settlement:
    return Settlement(
        of.key,
        of.fence,
        verdict,
        now,
        started_at,
        due_at=due_at,
        code=code,
        error=error[:_LONGEST_ERROR],
        is_gone=is_gone,
    )
