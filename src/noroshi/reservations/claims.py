"""Claims: what is known of one job in; whether it is sent, skipped, failed or refused out (L8, L10, L11)."""

from datetime import timedelta

from noroshi.domain.instants import iso, plus
from noroshi.domain.notification_jobs import (
    MAX_ATTEMPTS,
    ClaimDecision,
    ClaimFacts,
    ClaimVerdict,
    JobKind,
    JobStatus,
)
from noroshi.reservations.display import why_no_resend
from noroshi.reservations.doubts import OUTCOME_UNKNOWN, RETRY_KEY_LIVES

LEASE = timedelta(seconds=30)
"""How long one sender is alone; every claim begins it anew."""

_SEND = ClaimDecision(ClaimVerdict.SEND)


def decide_claim(facts: ClaimFacts) -> ClaimDecision:
    job = facts.job
    if facts.is_asked and job.status is JobStatus.FAILED:
        refusal = why_no_resend(job, is_cancelled=facts.is_cancelled)
        return _mind_doubts(facts) if refusal is None else ClaimDecision(ClaimVerdict.REFUSE, refusal)
    if job.status is not JobStatus.PENDING:
        return _skip(f"the job is {job.status}, not PENDING")
    if job.scheduled_at > facts.now:
        return _skip(f"the job is not due before {iso(job.scheduled_at)}")
    if job.attempt_count >= MAX_ATTEMPTS:
        return _skip(f"the job was tried {job.attempt_count} times; {MAX_ATTEMPTS} is the most")
    return _mind_doubts(facts)


def _mind_doubts(facts: ClaimFacts) -> ClaimDecision:
    """A job that may be sent, unless something of it is missing, too late or not known."""
    job = facts.job
    if not job.has_line_user_id:
        return _fail("customer_line_user_id is missing")
    if not job.message_text.strip():
        return _fail("message_text is empty")
    # The attempt to come must end while LINE still knows the key of the one before.
    if facts.open_since is not None and plus(facts.open_since, RETRY_KEY_LIVES) < plus(facts.now, LEASE):
        return _fail(f"{OUTCOME_UNKNOWN}: an attempt began at {iso(facts.open_since)}, and nobody knows how it ended")
    if job.kind is JobKind.REMINDER and facts.is_cancelled:
        return _fail("reservation cancelled: an earlier attempt has no known outcome, and no other is made")
    if job.kind is JobKind.REMINDER and facts.now > facts.event_end:
        return _fail("pickup over: the reminder would come too late")
    return _SEND


def _skip(error: str) -> ClaimDecision:
    return ClaimDecision(ClaimVerdict.SKIP, error)


def _fail(error: str) -> ClaimDecision:
    return ClaimDecision(ClaimVerdict.FAIL, error)
