"""Reports of the sender: claims and their results in, the one JSON that every run answers out (L8)."""

from collections import Counter
from collections.abc import Sequence

from noroshi.domain.instants import iso
from noroshi.domain.notification_jobs import ClaimFacts, ClaimVerdict, DueJobs, Job
from noroshi.domain.shop import JobReport, SendReport, SendResult, SendSummary
from noroshi.reservations.claims import decide_claim


def report_job(before: Job, after: Job, result: SendResult, error: str | None) -> JobReport:
    return JobReport(
        job_id=before.job_id,
        reservation_id=before.reservation_id,
        kind=before.kind,
        status_before=before.status,
        status_after=after.status,
        attempt_count_before=before.attempt_count,
        attempt_count_after=after.attempt_count,
        result=result,
        error=error,
    )


def rehearse(facts: ClaimFacts) -> JobReport:
    """What a dry run says of a job: `error` is why it would not be sent."""
    decision = decide_claim(facts)
    is_skipped = decision.verdict is ClaimVerdict.SKIP
    result = SendResult.SKIPPED if is_skipped else SendResult.DRY_RUN
    return report_job(facts.job, facts.job, result, decision.error)


def report_run(due: DueJobs, results: Sequence[JobReport], *, is_dry: bool) -> SendReport:
    counts = Counter(report.result for report in results)
    return SendReport(
        summary=SendSummary(
            now=iso(due.now),
            total_candidates=due.total,
            processed=len(results),
            sent=counts[SendResult.SENT],
            skipped=counts[SendResult.SKIPPED],
            failed=counts[SendResult.FAILED],
            dry_run=is_dry,
            dry_run_count=counts[SendResult.DRY_RUN],
        ),
        results=list(results),
    )
