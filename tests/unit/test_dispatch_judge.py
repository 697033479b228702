"""What becomes of a delivery after an attempt, or without one."""

from datetime import timedelta

import pytest
from dispatch_cast import NOW, a_claim, an_expired, seconds
from hypothesis import given
from hypothesis import strategies as some

from noroshi.domain.categories import Categories, Category, OnUnknown
from noroshi.domain.channels import CHANNELS
from noroshi.domain.deliveries import Claim, Settlement, Verdict
from noroshi.domain.inbox import Draft
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Gone, Kept, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content, RenderFailure
from noroshi.flow.dispatch.judge import (
    is_failure,
    judge,
    judge_doubt,
    judge_expired,
    judge_mishap,
    judge_unsent,
    release,
    rest_after,
)

STARTED = Instant(NOW - 1_000)
CATEGORIES = Categories(
    [
        Category("careful", on_unknown=OnUnknown.RECONCILE),
        Category("stubborn", tries=6),
    ]
)
RESENT = ("general", "careful")


def judged(claim: Claim, outcome: Outcome, fraction: float = 0.5) -> Settlement:
    return judge(claim, outcome, NOW, fraction, CATEGORIES, STARTED)


@pytest.mark.parametrize("category", ["general", "marketing", "one_time_code", "careful", "nobody_knows_it"])
@pytest.mark.parametrize(
    ("outcome", "verdict", "code"),
    [
        (Sent("m1"), Verdict.SENT, ""),
        (Retry("BUSY", scope=Scope.ACCOUNT), Verdict.RELEASE, "BUSY"),
        (Misconfigured("BAD_KEY"), Verdict.RELEASE, "BAD_KEY"),
        (Gone("UNREGISTERED"), Verdict.DEAD, "UNREGISTERED"),
        (Rejected("TOO_BIG"), Verdict.DEAD, "TOO_BIG"),
    ],
)
def test_an_answer_means_the_same_in_every_category(
    category: str, outcome: Outcome, verdict: Verdict, code: str
) -> None:
    settlement = judged(a_claim(category=category, tries=2), outcome)
    assert (settlement.verdict, settlement.code) == (verdict, code)
    assert settlement.started_at == STARTED and settlement.at == NOW and settlement.fence == 1


def test_sent_carries_the_providers_message_id() -> None:
    assert judged(a_claim(), Sent("m1")).message_id == "m1"


def test_only_gone_deactivates_the_endpoint() -> None:
    assert judged(a_claim(), Gone("UNREGISTERED")).is_gone
    assert not judged(a_claim(), Rejected("UNREGISTERED")).is_gone


@pytest.mark.parametrize("outcome", [Retry("BUSY"), Unknown("TIMEOUT")])
@pytest.mark.parametrize(
    ("channel", "sends"), [("push", 4), ("email", 6), ("sms", 3), ("in_app", 4), ("web_push", 4), ("their_own", 4)]
)
def test_n_retries_are_n_plus_one_sends(channel: str, sends: int, outcome: Outcome) -> None:  # N6.1
    lane = Lane(channel, "acme", Priority.NORMAL)
    verdicts = [judged(a_claim(lane=lane, tries=t), outcome).verdict for t in range(sends)]
    assert verdicts == [Verdict.RETRY] * (sends - 1) + [Verdict.DEAD]


def test_used_up_retries_end_with_the_last_code() -> None:  # N6.3
    settlement = judged(a_claim(tries=3), Retry("BUSY", "503"))
    assert (settlement.verdict, settlement.code, settlement.error) == (Verdict.DEAD, "BUSY", "503")


@pytest.mark.parametrize("outcome", [Retry("BUSY"), Unknown("TIMEOUT")])
def test_marketing_gets_one_try(outcome: Outcome) -> None:  # N6.5
    settlement = judged(a_claim(category="marketing"), outcome)
    assert (settlement.verdict, settlement.code) == (Verdict.DEAD, outcome.code)  # type: ignore[union-attr]


def test_a_category_may_allow_more_tries_than_the_channel() -> None:
    assert judged(a_claim(category="stubborn", tries=4), Retry("BUSY")).verdict is Verdict.RETRY
    assert judged(a_claim(category="stubborn", tries=5), Retry("BUSY")).verdict is Verdict.DEAD


@pytest.mark.parametrize("category", RESENT)
def test_an_unknown_outcome_is_tried_again_and_uses_up_a_try(category: str) -> None:
    settlement = judged(a_claim(category=category), Unknown("TIMEOUT"))
    assert (settlement.verdict, settlement.code) == (Verdict.RETRY, "TIMEOUT")


def test_an_unknown_one_time_code_is_given_up() -> None:  # N3.6
    settlement = judged(a_claim(category="one_time_code"), Unknown("TIMEOUT"))
    assert (settlement.verdict, settlement.code) == (Verdict.DEAD, "outcome_unknown")
    assert settlement.error == "TIMEOUT"


def test_an_answered_failure_of_a_one_time_code_is_tried_again() -> None:
    assert judged(a_claim(category="one_time_code"), Retry("BUSY")).verdict is Verdict.RETRY


@given(
    channel=some.sampled_from(sorted(CHANNELS)),
    tries=some.integers(0, 4),
    fraction=some.floats(0, 1, exclude_max=True),
)
def test_the_delay_keeps_to_the_channels_policy(channel: str, tries: int, fraction: float) -> None:  # N6.1
    policy = CHANNELS[channel].retry
    settlement = judged(a_claim(lane=Lane(channel, "acme", Priority.NORMAL), tries=tries), Retry("BUSY"), fraction)
    if tries >= policy.retries:
        assert settlement.verdict is Verdict.DEAD
        return
    assert settlement.due_at is not None
    delay = timedelta(microseconds=settlement.due_at - NOW)
    nominal = min(policy.base * policy.factor**tries, policy.longest)
    assert nominal * 0.5 - timedelta(microseconds=2) <= delay <= nominal * 1.5


def test_a_huge_number_of_tries_does_not_overflow_the_delay() -> None:
    patient = Categories([Category("patient", tries=10_000)])
    settlement = judge(a_claim(category="patient", tries=9_000), Retry("BUSY"), NOW, 0.5, patient, STARTED)
    assert settlement.due_at == plus(NOW, seconds(60))


@pytest.mark.parametrize(
    ("after", "delay"),
    [
        (seconds(7), seconds(7)),
        (seconds(3600), seconds(3600)),
        (seconds(1e9), seconds(3600)),
        (seconds(-30), seconds(1)),
        (seconds(0), seconds(1)),
        (None, seconds(1)),
    ],
)
def test_retry_after_wins_over_the_backoff_if_it_makes_sense(
    after: timedelta | None, delay: timedelta
) -> None:  # N6.1, F13
    assert judged(a_claim(), Retry("BUSY", after=after)).due_at == plus(NOW, delay)


@pytest.mark.parametrize(
    ("outcome", "rest"),
    [
        (Retry("BUSY", after=seconds(7), scope=Scope.ACCOUNT), seconds(7)),
        (Retry("BUSY", after=seconds(1e9), scope=Scope.ACCOUNT), seconds(3600)),
        (Retry("BUSY", after=seconds(-5), scope=Scope.ACCOUNT), seconds(30)),
        (Retry("BUSY", scope=Scope.ACCOUNT), seconds(30)),
        (Misconfigured("BAD_KEY"), seconds(300)),
        (Retry("BUSY", after=seconds(7)), None),
        (Sent("m1"), None),
        (Gone("X"), None),
    ],
)
def test_the_account_rests_as_long_as_the_answer_says(outcome: Outcome, rest: timedelta | None) -> None:  # F13
    assert rest_after(outcome) == rest


def test_a_release_is_due_at_once_and_uses_up_nothing() -> None:  # N6.4
    settlement = release(a_claim(tries=2), NOW, "closing")
    assert (settlement.verdict, settlement.due_at, settlement.started_at) == (Verdict.RELEASE, NOW, None)


@pytest.mark.parametrize("outcome", [Retry("BUSY"), Unknown(), Retry("BUSY", scope=Scope.ACCOUNT), Misconfigured("X")])
def test_a_withdrawn_delivery_is_cancelled_instead_of_tried_again(outcome: Outcome) -> None:
    assert judged(a_claim(is_cancelled=True), outcome).verdict is Verdict.CANCELLED


def test_a_withdrawn_delivery_that_was_sent_is_sent() -> None:
    assert judged(a_claim(is_cancelled=True), Sent("m1")).verdict is Verdict.SENT


def test_a_retry_may_lie_past_the_expiry_and_is_found_expired_then() -> None:
    claim = a_claim(expires_at=plus(NOW, seconds(0.1)))
    again = judged(claim, Retry("BUSY"))
    assert again.verdict is Verdict.RETRY and again.due_at is not None
    settlement = judge_unsent(claim, Content("Hello"), again.due_at)
    assert settlement is not None and (settlement.verdict, settlement.code) == (Verdict.SUPPRESSED, "expired")


def test_what_may_be_sent_is_not_judged_before() -> None:
    assert judge_unsent(a_claim(expires_at=Instant(NOW + 1)), Content("Hello"), NOW) is None


def test_a_render_failure_is_a_dead_letter() -> None:  # N2.5
    settlement = judge_unsent(a_claim(), RenderFailure("line 3: undefined"), NOW)
    assert settlement is not None
    assert (settlement.verdict, settlement.code) == (Verdict.DEAD, "render_error")
    assert settlement.error == "line 3: undefined"


def test_cancelled_goes_before_expired_and_expired_before_a_render_failure() -> None:
    late = a_claim(expires_at=NOW, is_cancelled=True)
    verdicts = [judge_unsent(c, RenderFailure("x"), NOW) for c in (late, a_claim(expires_at=NOW))]
    assert [s.verdict for s in verdicts if s] == [Verdict.CANCELLED, Verdict.SUPPRESSED]


def test_an_error_text_is_cut() -> None:
    assert len(judged(a_claim(), Rejected("X", "e" * 10_000)).error) == 500


SERVED = frozenset({("push", "apns")})


@pytest.mark.parametrize("category", RESENT)
def test_a_lease_without_an_outcome_is_sent_again_at_once(category: str) -> None:  # W10
    settlement = judge_expired(an_expired(category=category, claims=6), NOW, CATEGORIES, SERVED)
    assert settlement is not None
    assert (settlement.verdict, settlement.due_at, settlement.started_at) == (Verdict.RESEND, NOW, None)


def test_a_one_time_code_without_an_outcome_is_given_up() -> None:  # W11
    settlement = judge_expired(an_expired(category="one_time_code"), NOW, CATEGORIES, SERVED)
    assert settlement is not None and (settlement.verdict, settlement.code) == (Verdict.DEAD, "outcome_unknown")


def test_what_is_sent_by_settling_was_not_sent_without_it_and_is_not_given_up() -> None:  # W11
    expired = an_expired(category="one_time_code")
    settlement = judge_expired(expired, NOW, CATEGORIES, SERVED, repeats=timedelta(days=36_500))
    assert settlement is not None and settlement.verdict is Verdict.RESEND


def test_what_an_inbox_keeps_is_delivered_by_the_settling_commit() -> None:  # N5.4
    draft = Draft("hanako", "general", "{}")
    settlement = judged(a_claim(), Kept(draft))
    assert (settlement.verdict, settlement.draft, settlement.due_at) == (Verdict.DELIVERED, draft, None)


def test_the_seventh_claim_without_an_outcome_is_poison() -> None:  # W27, F21
    settlement = judge_expired(an_expired(claims=7), NOW, CATEGORIES, SERVED)
    assert settlement is not None and (settlement.verdict, settlement.code) == (Verdict.DEAD, "poison")


def test_a_lease_that_outlived_its_delivery_is_expired() -> None:
    settlement = judge_expired(an_expired(expires_at=NOW), NOW, CATEGORIES, SERVED)
    assert settlement is not None and (settlement.verdict, settlement.code) == (Verdict.SUPPRESSED, "expired")


def test_a_lane_nobody_here_serves_is_left_alone() -> None:  # F26
    stranger = an_expired(lane=Lane("push", "fcm", Priority.HIGH), claims=9, category="one_time_code")
    assert judge_expired(stranger, NOW, CATEGORIES, SERVED) is None


DAY = timedelta(hours=24)
LONG_AGO = plus(NOW, -DAY)
CODE = "one_time_code"


def test_a_code_of_unknown_outcome_is_tried_again_while_its_provider_knows_it_again() -> None:  # W11, L10
    sent = judge(a_claim(category=CODE), Unknown("TIMEOUT"), NOW, 0.5, CATEGORIES, STARTED, DAY)
    left = judge_expired(an_expired(category=CODE, wanted_at=NOW), NOW, CATEGORIES, SERVED, DAY)
    assert sent.verdict is Verdict.RETRY
    assert left is not None and left.verdict is Verdict.RESEND


def test_once_the_provider_may_have_forgotten_it_the_category_decides() -> None:  # W11
    sent = judge(a_claim(category=CODE, wanted_at=LONG_AGO), Unknown("TIMEOUT"), NOW, 0.5, CATEGORIES, STARTED, DAY)
    left = judge_expired(an_expired(category=CODE, wanted_at=LONG_AGO), NOW, CATEGORIES, SERVED, DAY)
    assert (sent.verdict, sent.code) == (Verdict.DEAD, "outcome_unknown")
    assert left is not None and (left.verdict, left.code) == (Verdict.DEAD, "outcome_unknown")
    resent = judge(a_claim(wanted_at=LONG_AGO), Unknown("TIMEOUT"), NOW, 0.5, CATEGORIES, STARTED, DAY)
    assert resent.verdict is Verdict.RETRY


@pytest.mark.parametrize("tried", [{"tries": 1}, {"claims": 2}])
def test_a_doubtful_code_is_not_sent_once_the_provider_may_have_forgotten_it(tried: dict[str, int]) -> None:
    settlement = judge_doubt(a_claim(category=CODE, wanted_at=LONG_AGO, **tried), NOW, CATEGORIES, DAY)
    assert settlement is not None
    assert (settlement.verdict, settlement.code, settlement.started_at) == (Verdict.DEAD, "outcome_unknown", None)


@pytest.mark.parametrize(
    "claim",
    [
        a_claim(category=CODE, wanted_at=LONG_AGO),
        a_claim(category=CODE, wanted_at=plus(LONG_AGO, seconds(1)), tries=1),
        a_claim(wanted_at=LONG_AGO, tries=1),
    ],
    ids=["never tried", "still known", "may be sent twice"],
)
def test_what_is_in_no_doubt_is_sent(claim: Claim) -> None:
    assert judge_doubt(claim, NOW, CATEGORIES, DAY) is None


def test_where_no_provider_knows_anything_again_a_retry_is_a_retry() -> None:
    claim = a_claim(category=CODE, wanted_at=LONG_AGO, tries=1)
    assert judge_doubt(claim, NOW, CATEGORIES, timedelta(0)) is None


def test_a_mishap_in_composing_counts_as_a_claim_without_outcome() -> None:  # W27
    first, last = judge_mishap(a_claim(claims=1), NOW, 0.5), judge_mishap(a_claim(claims=7), NOW, 0.5)
    assert (first.verdict, first.due_at) == (Verdict.RESEND, plus(NOW, seconds(5)))
    assert (last.verdict, last.code) == (Verdict.DEAD, "poison")


def test_the_breaker_counts_what_is_no_answer() -> None:  # N6.4
    failures: list[Outcome] = [Retry("X"), Retry("X", scope=Scope.ACCOUNT), Unknown(), Misconfigured("X")]
    answers: list[Outcome] = [Sent("m1"), Gone("X"), Rejected("X"), Retry("X", scope=Scope.RECIPIENT)]
    assert [is_failure(o) for o in failures + answers] == [True] * 4 + [False] * 4
