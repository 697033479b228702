"""What the operator's pages say of a run of the sender and of money that came in."""

from typing import Any

import pytest
from tests.reservation_cast import CREATED, booking, cancelled, confirmed, job, reservation

from noroshi.domain.notification_jobs import ClaimFacts, DueJobs, JobKind, JobStatus
from noroshi.domain.reservations import PaymentStatus, Reservation
from noroshi.domain.shop import BookingView, SendReport
from noroshi.entrypoints.shop_pages import words
from noroshi.entrypoints.shop_pages.drawing import page
from noroshi.reservations.display import view_kinds
from noroshi.reservations.reports import rehearse, report_run

NOTHING_TO_SEND = "いま送るものはありません。"
HELD_UP = "今回は何も送っていません"


def rehearsed(**fields: Any) -> dict[str, Any]:
    facts = ClaimFacts(job=job(**fields), now=job().scheduled_at, event_end=job().scheduled_at, is_cancelled=False)
    shown = words.show_report(report_run(DueJobs(facts.now, 1), [rehearse(facts)], is_dry=True))
    (one,) = shown["results"]
    return dict(one)


@pytest.mark.parametrize(
    ("fields", "result", "word"),
    [
        ({}, "DRY_RUN", "送信されます"),
        ({"has_line_user_id": False}, "FAILED", "送信できず、失敗になります"),
        ({"message_text": ""}, "FAILED", "送信できず、失敗になります"),
        ({"attempt_count": 5}, "SKIPPED", "見送られます"),
    ],
)
def test_a_dry_run_says_of_each_job_what_would_become_of_it(fields: dict[str, Any], result: str, word: str) -> None:
    # L10: above all not that it is sent where it would fail
    shown = rehearsed(**fields)
    assert (shown["result"], shown["result_word"]) == (result, word)


def drawn(report: SendReport) -> str:
    return bytes(page("report.html", token="", back="/shop", report=words.show_report(report)).body).decode()


def test_a_run_that_came_to_nothing_says_so_and_not_that_there_is_nothing() -> None:
    # L10: another sender has the lease, or LINE is paused
    assert HELD_UP in drawn(report_run(DueJobs(CREATED, 3), [], is_dry=False))
    assert NOTHING_TO_SEND not in drawn(report_run(DueJobs(CREATED, 3), [], is_dry=False))


@pytest.mark.parametrize("is_dry", [True, False])
def test_where_nothing_is_due_there_is_nothing_to_send(is_dry: bool) -> None:
    text = drawn(report_run(DueJobs(CREATED, 0), [], is_dry=is_dry))
    assert NOTHING_TO_SEND in text
    assert HELD_UP not in text


@pytest.mark.parametrize(
    ("of", "trouble"),
    [
        (reservation(), None),
        (confirmed(paid_amount=9_500), None),
        (cancelled(), None),
        (cancelled(confirmed_at=CREATED, payment_status=PaymentStatus.SUCCEEDED, paid_amount=9_500), None),
        (reservation(paid_amount=9_499), "入金不足"),
        (cancelled(payment_status=PaymentStatus.SUCCEEDED, paid_amount=9_500), "キャンセル後の入金"),
    ],
)
def test_money_that_confirmed_nothing_is_seen_on_both_pages(of: Reservation, trouble: str | None) -> None:
    # L5
    found = booking(of)
    shown = words.show_booking(BookingView(found, view_kinds(found), "/booked/237"))
    assert shown["money_trouble"] == trouble
    one = bytes(page("one.html", token="", booking=shown).body).decode()
    listed = bytes(page("list.html", token="", bookings=[shown], older=None, is_late=False).body).decode()
    assert all((words.PAID_TOO_LITTLE in text) is (trouble == words.PAID_TOO_LITTLE) for text in (one, listed))
    assert all((words.PAID_AFTER_CANCELLATION in text) is (trouble == "キャンセル後の入金") for text in (one, listed))


def test_the_button_warns_where_the_message_may_have_arrived() -> None:
    # L10, L11
    failed = job(JobKind.CONFIRMATION, JobStatus.FAILED, attempt_count=1, last_error="no answer: ReadTimeout")
    found = booking(confirmed(), failed)
    shown = words.show_booking(BookingView(found, view_kinds(found), "/booked/237"))
    text = bytes(page("one.html", token="", booking=shown).body).decode()
    assert "<strong>2025年12月2日（火）1:53</strong> までの再送なら、二重には届きません。" in text
