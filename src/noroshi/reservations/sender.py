"""The sender: due jobs in, LINE called for each, and what became of them out. Nothing else calls LINE or says SENT."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid5

import structlog
from msgspec.structs import replace

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import iso
from noroshi.domain.line import LineAnswer
from noroshi.domain.notification_jobs import Claim, ClaimDecision, ClaimVerdict, DueJobs, Job, JobId, LeaseAnswer
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import ReservationId
from noroshi.domain.shop import SENTENCES, JobReport, SendReport, SendResult, Why
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.line import Line
from noroshi.ports.notification_jobs import NotificationJobs
from noroshi.reservations.claims import LEASE, decide_claim
from noroshi.reservations.doubts import NO_ANSWER
from noroshi.reservations.reports import rehearse, report_job, report_run

DEFAULT_LIMIT = 50
BUDGET = timedelta(seconds=8)
"""What the first attempt may take of a webhook's or a customer's time, and how long a person's command waits."""

ANSWERS_WITHIN = timedelta(seconds=15)
"""The longest that LINE is waited for: with less of the lease left, a push is not begun."""

_LOOK_AGAIN = timedelta(milliseconds=200)
_RETRY_KEYS = UUID("0f3f1c1e-52c1-5e0c-9b3e-6d2a1f6b7a11")

_log = structlog.get_logger(__name__)


def retry_key(tenant: TenantId, job: Job) -> UUID:
    """The same for every try of a job, and never that of a job in another database."""
    return uuid5(_RETRY_KEYS, f"{tenant}/{job.job_id}/{iso(job.created_at)}")


class Sender:
    """One at a time for a tenant, over all processes, by a lease beside the jobs; and even two at once would send a job
    once, for each of its tries has the same retry key (L10). `line` None: it is not set up here, and only dry runs can
    be made."""

    def __init__(
        self, jobs: NotificationJobs, line: Line | None, clock: Clock, dice: Dice, crash_points: CrashPoints
    ) -> None:
        self._jobs = jobs
        self._line = line
        self._clock = clock
        self._dice = dice
        self._crash_points = crash_points

    @property
    def is_on(self) -> bool:
        return self._line is not None

    async def send_pending_jobs(
        self, tenant: TenantId, limit: int = DEFAULT_LIMIT, *, is_dry: bool = False
    ) -> SendReport:
        """What is due, oldest first. While another sender is at work, or LINE is paused, nothing is done."""
        due = await self._jobs.list_due(tenant, None, limit)
        if is_dry:
            return report_run(due, [rehearse(facts) for facts in due.facts], is_dry=True)
        if not due.facts:
            return report_run(due, [], is_dry=False)
        async with self._lease(tenant) as (answer, holder):
            if answer is not LeaseAnswer.TAKEN:
                return report_run(due, [], is_dry=False)
            return await self._send_due(tenant, holder, None, limit)

    async def send_initially(self, tenant: TenantId, reservation_id: ReservationId, limit: int = DEFAULT_LIMIT) -> None:
        """The one attempt right after jobs were made: this reservation's first, then what else is due, within a budget.
        What is not finished then stays pending, and cron sends it with the same key (L9)."""
        try:
            async with asyncio.timeout(BUDGET.total_seconds()), self._awaited_lease(tenant, reservation_id) as holder:
                if holder is not None:
                    await self._send_due(tenant, holder, reservation_id, limit)
        except TimeoutError:
            _log.warning("initial_attempt_out_of_time", reservation_id=reservation_id)

    async def send_single_job(self, tenant: TenantId, job_id: JobId, *, is_dry: bool = False) -> SendReport | None:
        """A person's own command, which may also send a FAILED job again (L11). None: there is no such job."""
        facts = await self._jobs.find_facts(tenant, job_id)
        if facts is None:
            return None
        due, asked = DueJobs(facts.now, 1), replace(facts, is_asked=True)
        if is_dry:
            if (decision := decide_claim(asked)).verdict is ClaimVerdict.REFUSE:
                raise _refused(decision)
            return report_run(due, [rehearse(asked)], is_dry=True)
        async with self._patient_lease(tenant) as holder:
            report = await self._send(tenant, job_id, holder, is_asked=True)
        if report is None:
            raise ProblemError("conflict", "The job was taken over or removed meanwhile: look at it again.")
        return report_run(due, [report], is_dry=False)

    async def _send_due(self, tenant: TenantId, holder: str, first: ReservationId | None, limit: int) -> SendReport:
        """Listed anew: whoever had the lease before may have sent some of them."""
        due = await self._jobs.list_due(tenant, first, limit)
        results: list[JobReport] = []
        for facts in due.facts:
            report = await self._send(tenant, facts.job.job_id, holder)
            if report is not None:
                results.append(report)
        return report_run(due, results, is_dry=False)

    async def _send(self, tenant: TenantId, job_id: JobId, holder: str, *, is_asked: bool = False) -> JobReport | None:
        """None: the job is gone, or the lease is another's."""
        asked_at = self._clock.monotonic()
        claim = await self._jobs.claim(tenant, job_id, holder, LEASE, decide_claim, is_asked=is_asked)
        if claim is None:
            return None
        match claim.decision.verdict:
            case ClaimVerdict.REFUSE:
                raise _refused(claim.decision)
            case ClaimVerdict.SKIP:
                return report_job(claim.before, claim.after, SendResult.SKIPPED, claim.decision.error)
            case ClaimVerdict.FAIL:
                return report_job(claim.before, claim.after, SendResult.FAILED, claim.decision.error)
        if self._clock.monotonic() - asked_at > (LEASE - ANSWERS_WITHIN).total_seconds():
            return None  # we were away: another may be sending by now, and will find the attempt
        return await self._push_and_record(tenant, claim)

    async def _push_and_record(self, tenant: TenantId, claim: Claim) -> JobReport:
        job = claim.before
        answer = await self._push(tenant, claim)
        error = None if answer.is_sent else _error_of(answer)
        after = await self._jobs.record(tenant, job.job_id, claim.attempt, error)
        result = SendResult.SENT if answer.is_sent else SendResult.FAILED
        return report_job(job, after or claim.after, result, error)

    async def _push(self, tenant: TenantId, claim: Claim) -> LineAnswer:
        line = self._line
        assert line is not None  # noqa: S101 - who has the lease has it
        self._crash_points.reach("push.line.before")
        try:
            key = retry_key(tenant, claim.before)
            async with asyncio.timeout(ANSWERS_WITHIN.total_seconds()):
                answer = await line.push(claim.line_user_id, claim.before.message_text, key)
        except Exception as bug:  # noqa: BLE001 - one job's failure must not stop the run; the text may quote anything
            _log.error("push_failed", job_id=claim.before.job_id, error=type(bug).__name__)
            answer = LineAnswer(None, type(bug).__name__)
        self._crash_points.reach("push.line.after")
        return answer

    @asynccontextmanager
    async def _lease(self, tenant: TenantId) -> AsyncIterator[tuple[LeaseAnswer, str]]:
        if self._line is None:
            raise ProblemError("channel_not_configured", "Sending needs LINE_MESSAGING_CHANNEL_ACCESS_TOKEN.")
        holder = f"{self._dice.bits(64):016x}"
        answer = await self._jobs.take_lease(tenant, holder, LEASE)
        try:
            yield answer, holder
        except GeneratorExit:
            answer = LeaseAnswer.BUSY  # thrown away with its loop: nobody is left who could tell the store
            raise
        finally:
            if answer is LeaseAnswer.TAKEN:
                await self._jobs.release_lease(tenant, holder)

    @asynccontextmanager
    async def _awaited_lease(self, tenant: TenantId, reservation_id: ReservationId) -> AsyncIterator[str | None]:
        """Waits its turn; None: nothing of the reservation is left to send, or LINE is paused."""
        while True:
            due = await self._jobs.list_due(tenant, reservation_id, 1)
            if not any(facts.job.reservation_id == reservation_id for facts in due.facts):
                yield None
                return
            async with self._lease(tenant) as (answer, holder):
                if answer is not LeaseAnswer.BUSY:
                    yield holder if answer is LeaseAnswer.TAKEN else None
                    return
            await self._clock.sleep(_LOOK_AGAIN)

    @asynccontextmanager
    async def _patient_lease(self, tenant: TenantId) -> AsyncIterator[str]:
        """Waits a while for the lease; a person who is refused may ask again."""
        give_up_at = self._clock.monotonic() + BUDGET.total_seconds()
        while True:
            async with self._lease(tenant) as (answer, holder):
                if answer is LeaseAnswer.TAKEN:
                    yield holder
                    return
            if answer is LeaseAnswer.PAUSED:
                raise ProblemError("conflict", "LINE, or everything, is paused: end the pause first.")
            if self._clock.monotonic() >= give_up_at:
                raise ProblemError("conflict", "Another sender is at work: try again in a minute.")
            await self._clock.sleep(_LOOK_AGAIN)


def _refused(decision: ClaimDecision) -> ProblemError:
    return ProblemError("conflict", f"The job may not be sent again. {SENTENCES[Why(str(decision.error))]}")


def _error_of(answer: LineAnswer) -> str:
    """In full: status and body, never a header of the request."""
    return f"{NO_ANSWER}: {answer.body}" if answer.status is None else f"{answer.status}: {answer.body}"
