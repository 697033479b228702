"""Words of the pages: nouns of the domain in, what people read out."""

from typing import Any

from noroshi.domain.instants import Instant
from noroshi.domain.japan import pickup_display, shown_moment
from noroshi.domain.notification_jobs import DisplayState, Job, JobKind
from noroshi.domain.reservations import PaymentStatus, Reservation, ReservationStatus
from noroshi.domain.shop import (
    BookedView,
    BookingView,
    JobReport,
    KindView,
    NotificationContext,
    SendReport,
    SendResult,
)
from noroshi.entrypoints.api.shop_sentences import POLICIES, japanese

KINDS = {
    JobKind.CONFIRMATION: "予約確定通知",
    JobKind.REMINDER: "受取リマインダー",
    JobKind.CANCEL_COMPLETED: "キャンセル完了通知",
}
STATES = {
    DisplayState.PENDING: "送信待ち",
    DisplayState.SENT: "送信済み",
    DisplayState.FAILED: "送信失敗",
    DisplayState.DASH: "対象外",
    DisplayState.NONE: "ジョブなし",
}
STATUSES = {
    ReservationStatus.PENDING: "お支払い待ち",
    ReservationStatus.CONFIRMED: "予約確定",
    ReservationStatus.CANCELLED: "キャンセル済み",
}
PAYMENTS = {PaymentStatus.UNPAID: "未払い", PaymentStatus.SUCCEEDED: "支払い済み"}
PAID_TOO_LITTLE = "入金不足"
PAID_AFTER_CANCELLATION = "キャンセル後の入金"
RESULTS = {
    SendResult.SENT: "送信しました",
    SendResult.FAILED: "失敗しました",
    SendResult.SKIPPED: "送信しませんでした",
    SendResult.DRY_RUN: "送信されます",
}
WOULD_FAIL = "送信できず、失敗になります"
WOULD_BE_SKIPPED = "見送られます"

Shown = dict[str, Any]


def show_booking(view: BookingView) -> Shown:
    kept, booking = view.booking.reservation, view.booking
    return {
        "number": kept.reservation_id,
        "customer": booking.customer.name or booking.customer.customer_id,
        "is_linked": booking.customer.line_user_id is not None,
        "farm": booking.farm.name,
        "pickup": pickup_display(kept.event_start, kept.event_end),
        "status": kept.status.value,
        "status_word": STATUSES[kept.status],
        "payment_word": PAYMENTS[kept.payment_status],
        "money_trouble": _money_trouble(kept),
        "total": f"{kept.total:,}円",
        "paid": None if kept.paid_amount is None else f"{kept.paid_amount:,}円",
        "created": shown_moment(kept.created_at),
        "confirmed": _when(kept.confirmed_at),
        "cancelled": _when(kept.cancelled_at),
        "policy": POLICIES[kept.reminder_policy or booking.farm.reminder_policy],
        "code": kept.pickup_code,
        "link": view.link,
        "kinds": [show_kind(kind) for kind in view.kinds],
    }


def _money_trouble(kept: Reservation) -> str | None:
    """Money that came in and confirmed nothing: a person has to decide what becomes of it."""
    if kept.is_confirmed or kept.paid_amount is None:
        return None
    return PAID_AFTER_CANCELLATION if kept.payment_status is PaymentStatus.SUCCEEDED else PAID_TOO_LITTLE


def show_kind(view: KindView) -> Shown:
    """`refusal` is said where somebody would look for the button."""
    is_failed = view.state is DisplayState.FAILED
    return {
        "word": KINDS[view.kind],
        "state": view.state.value,
        "state_word": STATES[view.state],
        "why": None if view.why is None else japanese(view.why),
        "job": None if view.job is None else _show_job(view.job),
        "may_resend": view.no_resend is None,
        "doubles_after": _when(view.doubles_after),
        "refusal": japanese(view.no_resend) if is_failed and view.no_resend is not None else None,
    }


def _show_job(job: Job) -> Shown:
    return {
        "id": job.job_id,
        "scheduled": shown_moment(job.scheduled_at),
        "updated": shown_moment(job.updated_at),
        "attempts": job.attempt_count,
        "error": job.last_error,
        "text": job.message_text,
    }


def show_report(report: SendReport) -> Shown:
    """`is_held_up`: something is due, and this run came to none of it."""
    summary = report.summary
    return {
        "is_dry": summary.dry_run,
        "candidates": summary.total_candidates,
        "sent": summary.sent,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "is_held_up": bool(summary.total_candidates) and not report.results,
        "results": [_show_result(one, is_dry=summary.dry_run) for one in report.results],
    }


def _show_result(one: JobReport, *, is_dry: bool) -> Shown:
    would_fail = one.result is SendResult.DRY_RUN and one.error is not None
    is_passed_over = is_dry and one.result is SendResult.SKIPPED
    return {
        "number": one.reservation_id,
        "kind": KINDS[one.kind],
        "result": (SendResult.FAILED if would_fail else one.result).value,
        "result_word": WOULD_FAIL if would_fail else WOULD_BE_SKIPPED if is_passed_over else RESULTS[one.result],
        "error": one.error,
    }


def show_booked(view: BookedView) -> Shown:
    kept = view.booking.reservation
    return {
        "number": kept.reservation_id,
        "farm": view.booking.farm.name,
        "is_gone": view.is_expired_for_display,
        "may_cancel": not kept.is_cancelled and not view.is_expired,
        "status": kept.status.value,
        "status_word": STATUSES[kept.status],
        "pickup": view.context.pickup_display,
        "place": view.context.pickup_place_name,
        "map": view.context.pickup_map_url,
        "memo": view.context.pickup_detail_memo,
        "code": kept.pickup_code,
        "rice": _rice(view.context),
        "subtotal": f"{kept.rice_subtotal:,}円",
    }


def _rice(context: NotificationContext) -> list[tuple[str, str, str]]:
    sizes = (
        (context.label_5kg, context.qty_5, context.subtotal_5),
        (context.label_10kg, context.qty_10, context.subtotal_10),
        (context.label_25kg, context.qty_25, context.subtotal_25),
    )
    return [(label, f"{count}袋", f"{yen:,}円") for label, count, yen in sizes if count]


def _when(instant: Instant | None) -> str | None:
    return None if instant is None else shown_moment(instant)
