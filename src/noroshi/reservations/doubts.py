"""Doubts: a failed job in; from when on sending it again may make it arrive twice out (L10, L11)."""

import re
from datetime import timedelta

from noroshi.domain.instants import Instant, plus
from noroshi.domain.notification_jobs import Job

RETRY_KEY_LIVES = timedelta(hours=24)
"""As long as LINE knows a push again by its key."""

NO_ANSWER = "no answer"
OUTCOME_UNKNOWN = "outcome unknown"

_IN_DOUBT = re.compile(rf"{NO_ANSWER}|{OUTCOME_UNKNOWN}|[1235]\d\d: ")
"""How the last error begins where LINE may have taken the message all the same; a 4xx is a refusal."""

_UNDER_WAY = timedelta(minutes=1)
"""Longer than a push takes: one begun before the end of the key must also arrive before it."""


def doubles_after(job: Job) -> Instant | None:
    """None: LINE refused it, or was never asked. No attempt was made before `scheduled_at`, so no key is older."""
    if job.last_error is None or not _IN_DOUBT.match(job.last_error):
        return None
    return plus(job.scheduled_at, RETRY_KEY_LIVES - _UNDER_WAY)
