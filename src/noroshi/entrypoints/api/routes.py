"""The table of routes: every path the API serves, with its scope, its shapes and what may go wrong."""

from functools import cache
from typing import Any

import msgspec

from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import MAX_REQUEST, MULTILINE, AcceptedAnswer, NotificationRequest, RejectionText
from noroshi.domain.shop import SendReport
from noroshi.entrypoints.api import (
    alerts,
    assets,
    batches,
    caught,
    dead_letters,
    errors_page,
    health,
    inbox,
    notifications,
    passes,
    preferences,
    previews,
    requests,
    reservation_jobs,
    reservations,
    streams,
    templates,
    users,
    webhooks,
    workload,
)
from noroshi.entrypoints.api import pauses as pause
from noroshi.entrypoints.api.answers import ERRORS_PATH
from noroshi.entrypoints.api.calls import Call, NoQuery, RawBody, Row
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.openapi import describe
from noroshi.entrypoints.api.paging import Page, PageQuery
from noroshi.entrypoints.api.wire import NotificationItem

_SEND, _READ, _ADMIN = KeyScope.SEND, KeyScope.READ, KeyScope.ADMIN
_NOTIFICATIONS = "/api/v1/notifications"
_BATCH = "/api/v1/notifications/{batch_id}"
_USER = "/api/v1/users/{user_id}"
_INBOX = "/api/v1/users/{user_id}/inbox"
_TEMPLATE = "/api/v1/templates/{template_id}"
_LETTERS = "/api/v1/dead-letters"
_LETTER = "/api/v1/dead-letters/{dead_letter_id}"
_REQUESTS = "/api/v1/requests"
_REQUEST = "/api/v1/requests/{request_id}"
_MISBEHAVIOUR = "/api/v1/caught/misbehaviour"
_FARM = "/api/v1/farms/{farm_id}"
_CUSTOMER = "/api/v1/customers/{customer_id}"
_RESERVATION = "/api/v1/reservations/{reservation_id}"


async def show_openapi(_desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _document()


@cache
def _document() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


def _row(method: str, path: str, run: Any, summary: str, scope: KeyScope | None, answer: Any, **more: Any) -> Row:
    return Row(
        method=method, path=path, name=run.__name__, run=run, summary=summary, scope=scope, answer=answer, **more
    )


ACCEPT = _row(
    "POST", _NOTIFICATIONS, notifications.accept_notifications, "Send a notification to people.", _SEND,
    AcceptedAnswer, status=202, body=NotificationRequest, multiline=MULTILINE, takes_idempotency_key=True,
    max_body=MAX_REQUEST,
    problems=(
        "idempotency_replay", "idempotency_key_reused", "unknown_template", "channel_not_configured",
        "strategy_not_supported", "overloaded",
    ),
)  # fmt: skip

ROUTES: tuple[Row, ...] = (
    ACCEPT,
    _row("GET", _NOTIFICATIONS, batches.list_batches, "Batches, newest first.", _READ, Page[batches.BatchItem],
         query=batches.BatchQuery),
    _row("GET", _BATCH, notifications.show_batch, "A batch, its notifications and why each is as it is.", _READ,
         notifications.BatchAnswer, query=PageQuery),
    _row("GET", f"{_BATCH}/status", notifications.show_batch_status, "The sums of a batch.", _READ,
         notifications.StatusAnswer),
    _row("GET", f"{_BATCH}/rejections", notifications.list_rejections, "Recipients who get nothing.", _READ,
         Page[RejectionText], query=PageQuery),
    _row("GET", f"{_BATCH}/notifications/{{notification_id}}", notifications.show_one_notification,
         "One notification with its whole trail.", _READ, NotificationItem),
    _row("POST", f"{_BATCH}/cancel", notifications.cancel_batch, "Withdraw what is not yet sent.", _SEND,
         notifications.CancelAnswer),
    _row("GET", "/api/v1/users", users.list_users, "People, in the order of their ids, without addresses.", _READ,
         Page[users.UserItem], query=users.UserQuery),
    _row("PUT", _USER, users.put_user, "Register or replace a person.", _SEND, users.UserAnswer, body=users.UserBody),
    _row("GET", _USER, users.show_user, "A person.", _READ, users.UserAnswer),
    _row("DELETE", _USER, users.remove_user, "Erase a person; history keeps ids only.", _SEND, None, status=204),
    _row("POST", f"{_USER}/devices", users.register_device, "Register or refresh a device.", _SEND,
         users.DeviceAnswer, body=users.DeviceBody),
    _row("GET", f"{_USER}/devices", users.list_devices, "A person's devices.", _READ, Page[users.DeviceAnswer],
         query=PageQuery),
    _row("DELETE", f"{_USER}/devices/{{token_id}}", users.remove_device, "Forget a device.", _SEND, None, status=204),
    _row("GET", f"{_USER}/notification-preferences", preferences.show_preferences, "What a person wishes.", _READ,
         preferences.PreferencesAnswer, is_personal=True),
    _row("PUT", f"{_USER}/notification-preferences", preferences.put_preferences, "Replace a person's wishes.", _SEND,
         preferences.PreferencesAnswer, body=preferences.PreferencesBody, problems=("required_category",),
         is_personal=True),
    _row("GET", f"{_USER}/rate-limits", preferences.show_rate_limits, "What is left of a person's limits.", _READ,
         preferences.RateLimitsAnswer),
    _row("GET", f"{_USER}/notifications", notifications.list_user_notifications, "A person's history, newest first.",
         _READ, Page[NotificationItem], query=PageQuery),
    _row("GET", _INBOX, inbox.list_inbox, "A person's inbox, newest first.", _READ, Page[inbox.EntryItem],
         query=inbox.InboxQuery, is_personal=True),
    _row("GET", f"{_INBOX}/unread-count", inbox.show_unread_count, "How many entries are unread.", _READ,
         inbox.InboxState, is_personal=True),
    _row("POST", f"{_INBOX}/read-all", inbox.read_all, "The person has read everything.", _SEND, inbox.ReadAllAnswer,
         query=inbox.UpToQuery, is_personal=True),
    _row("POST", f"{_INBOX}/{{entry_id}}/read", inbox.read_entry, "The person has read an entry: it is OPENED.", _SEND,
         inbox.MarkedAnswer, is_personal=True),
    _row("POST", f"{_INBOX}/{{entry_id}}/archive", inbox.archive_entry, "The person has put an entry away.", _SEND,
         inbox.MarkedAnswer, is_personal=True),
    _row("POST", f"{_INBOX}/tickets", passes.add_ticket, "A ticket for one stream or socket.", _READ,
         passes.TicketAnswer, status=201, is_personal=True),
    _row("GET", f"{_INBOX}/stream", streams.open_stream, "What comes into an inbox, live: server-sent events.", _READ,
         bytes, query=streams.StreamQuery, media=streams.EVENTS, problems=("overloaded",), is_personal=True),
    _row("GET", f"{_INBOX}/socket", streams.open_socket, "The same over a WebSocket.", _READ, bytes, status=101,
         query=streams.StreamQuery, media=streams.SOCKET, problems=("overloaded", "upgrade_required"),
         is_personal=True),
    _row("POST", f"{_USER}/tokens", passes.add_token, "A token for a person's own routes, at most for an hour.", _SEND,
         passes.TokenAnswer, status=201, body=passes.TokenBody),
    _row("GET", "/api/v1/templates", templates.list_templates, "Templates, in the order of their ids.", _READ,
         Page[templates.TemplateEntry], query=PageQuery),
    _row("POST", _TEMPLATE, templates.add_template, "Add a version of a template.", _ADMIN, templates.VersionAnswer,
         status=201, body=templates.TemplateBody, multiline=frozenset({"body", "metadata"}),
         problems=("bad_template",)),
    _row("GET", _TEMPLATE, templates.list_template_versions, "Every version of a template.", _READ,
         Page[templates.TemplateItem], query=PageQuery),
    _row("POST", f"{_TEMPLATE}/rollback", templates.roll_back_template, "Go back to an earlier version.", _ADMIN,
         templates.VersionAnswer, body=templates.RollbackBody),
    _row("POST", f"{_TEMPLATE}/preview", previews.preview_template, "What a person would get; nothing is sent.",
         _READ, previews.PreviewAnswer, body=previews.PreviewBody, multiline=frozenset({"data", "body", "metadata"}),
         problems=("bad_template",)),
    _row("GET", _LETTERS, dead_letters.list_dead_letters, "What ended without success, newest first.", _READ,
         Page[dead_letters.DeadLetterItem], query=dead_letters.DeadLetterQuery),
    _row("POST", f"{_LETTERS}/replay", dead_letters.replay_dead_letters, "Queue again all that match.", _ADMIN,
         dead_letters.ReplayAnswer, body=dead_letters.FilterBody),
    _row("POST", f"{_LETTERS}/discard", dead_letters.discard_dead_letters, "Forget all that match.", _ADMIN,
         dead_letters.DiscardAnswer, body=dead_letters.FilterBody),
    _row("GET", _LETTER, dead_letters.show_dead_letter, "A dead letter with its trail.", _READ,
         dead_letters.DeadLetterItem),
    _row("DELETE", _LETTER, dead_letters.discard_dead_letter, "Forget a dead letter.", _ADMIN, None, status=204),
    _row("POST", f"{_LETTER}/replay", dead_letters.replay_dead_letter, "Queue a dead letter again.", _ADMIN,
         dead_letters.ReplayAnswer, problems=("conflict",)),
    _row("GET", _REQUESTS, requests.list_requests, "Enqueued requests, newest first.", _READ,
         Page[requests.RequestItem], query=requests.RequestQuery),
    _row("GET", _REQUEST, requests.show_request, "An enqueued request, and what it became.", _READ,
         requests.RequestItem),
    _row("POST", f"{_REQUEST}/retry", requests.retry_request, "Take a dead request in again.", _ADMIN,
         requests.RequestItem, problems=("conflict",)),
    _row("POST", "/api/v1/pauses", pause.add_pause, "Stop an account, a channel, a category or everything.", _ADMIN,
         pause.PauseItem, status=201, body=pause.PauseBody),
    _row("GET", "/api/v1/pauses", pause.list_pauses, "What is stopped.", _READ, Page[pause.PauseItem],
         query=PageQuery),
    _row("DELETE", "/api/v1/pauses/{pause_id}", pause.remove_pause, "Go on.", _ADMIN, None, status=204),
    _row("GET", "/api/v1/caught", caught.list_caught, "What the catcher kept, newest first.", _READ,
         Page[caught.CaughtItem], query=caught.CaughtQuery),
    _row("PUT", _MISBEHAVIOUR, caught.put_misbehaviour, "Make the catcher fail (development only).", _ADMIN,
         Misbehaviour, body=Misbehaviour, problems=("not_found",)),
    _row("DELETE", _MISBEHAVIOUR, caught.remove_misbehaviour, "Let the catcher work again.", _ADMIN, None, status=204,
         problems=("not_found",)),
    _row("GET", "/api/v1/alerts", alerts.list_alerts, "What people should know of, the latest first.", _READ,
         Page[alerts.AlertItem], query=PageQuery),
    _row("GET", "/api/v1/caught/{caught_id}", caught.show_caught, "One message that the catcher kept.", _READ,
         caught.CaughtItem),
    _row("GET", "/api/v1/caught/{caught_id}/attachments/{position}", caught.show_caught_attachment,
         "A file that was attached to it.", _READ, bytes, media="application/octet-stream",
         headers=((b"content-disposition", b"attachment"),)),
    _row("GET", "/api/v1/workload", workload.show_workload, "What is unfinished, and since when.", _READ,
         workload.WorkloadAnswer),
    _row("POST", "/api/v1/farms", reservations.add_farm, "Add a farm.", _ADMIN, reservations.FarmAnswer, status=201,
         body=reservations.FarmBody, multiline=frozenset({"pickup_detail_memo"})),
    _row("GET", "/api/v1/farms", reservations.list_farms, "Every farm.", _READ, Page[reservations.FarmAnswer],
         query=PageQuery),
    _row("PUT", _FARM, reservations.replace_farm, "Replace a farm.", _ADMIN, reservations.FarmAnswer,
         body=reservations.FarmBody, multiline=frozenset({"pickup_detail_memo"})),
    _row("GET", _FARM, reservations.show_farm, "A farm.", _READ, reservations.FarmAnswer),
    _row("PUT", _CUSTOMER, reservations.put_customer, "Register or replace a customer.", _SEND,
         reservations.CustomerAnswer, body=reservations.CustomerBody),
    _row("GET", _CUSTOMER, reservations.show_customer, "A customer.", _READ, reservations.CustomerAnswer),
    _row("POST", "/api/v1/reservations", reservations.add_reservation, "Add a reservation, not paid yet.", _SEND,
         reservations.ReservationAnswer, status=201, body=reservations.ReservationBody),
    _row("GET", "/api/v1/reservations", reservations.list_reservations, "Reservations, newest first.", _READ,
         Page[reservations.ReservationAnswer], query=PageQuery),
    _row("GET", _RESERVATION, reservations.show_reservation, "A reservation, its jobs and why each is as it is.", _READ,
         reservations.ReservationAnswer),
    _row("POST", "/reservations/{reservation_id}/cancel", reservation_jobs.cancel_reservation, "Cancel a reservation.",
         _SEND, reservation_jobs.CancelAnswer, query=reservation_jobs.LinkQuery, takes_link=True,
         problems=("conflict",)),
    _row("GET", "/reservations/{reservation_id}/booked", reservation_jobs.show_booked, "What a customer's page shows.",
         _READ, reservation_jobs.BookedAnswer, query=reservation_jobs.LinkQuery, takes_link=True),
    _row("GET", "/dev/notifications/preview", reservation_jobs.preview_notifications,
         "What would be said of a reservation; keeps and sends nothing.", _READ, reservation_jobs.PreviewAnswer,
         query=reservation_jobs.PreviewQuery, problems=("not_found",)),
    _row("POST", "/notifications/send-pending", reservation_jobs.send_pending, "Send the jobs that are due.", _ADMIN,
         SendReport, query=reservation_jobs.PendingQuery, problems=("channel_not_configured",)),
    _row("POST", "/notifications/send-job/{job_id}", reservation_jobs.send_job,
         "Send one job, or a failed one again: after its `resend_may_double_after` it may arrive twice.", _ADMIN,
         SendReport, query=reservation_jobs.JobQuery, problems=("conflict", "channel_not_configured")),
    _row("POST", "/stripe/webhook", reservation_jobs.take_payment, "What Stripe says of payments.", None,
         reservation_jobs.PaymentAnswer, body=RawBody,
         problems=("bad_event_signature", "store_unavailable")),
    _row("POST", "/webhooks/{account}", webhooks.hear_webhook, "What a provider says later, such as LINE.", None,
         webhooks.HeardAnswer, body=RawBody, problems=("bad_signature", "store_unavailable")),
    _row("GET", "/healthz", health.show_health, "Whether the server lives.", None, health.HealthAnswer),
    _row("GET", "/readyz", health.show_readiness, "Whether the server can do its work.", None, health.ReadyAnswer,
         problems=("not_ready",)),
    _row("GET", "/metrics", health.show_metrics, "Metrics in Prometheus' text format.", None, bytes,
         media="text/plain; version=0.0.4; charset=utf-8"),
    _row("GET", "/inbox.js", assets.show_inbox_script, "The web component `<noroshi-inbox>`.", None, bytes,
         media=assets.SCRIPT, headers=assets.SHARED),
    _row("GET", "/inbox-look.js", assets.show_inbox_look, "Its texts, style and icons.", None, bytes,
         media=assets.SCRIPT, headers=assets.SHARED),
    _row("GET", "/inbox-demo", assets.show_inbox_demo, "A page that shows an inbox (development only).", None, bytes,
         media=assets.PAGE, headers=assets.GUARDED, problems=("not_found",)),
    _row("GET", "/inbox-demo.js", assets.show_inbox_demo_script, "What that page does.", None, bytes,
         media=assets.SCRIPT, problems=("not_found",)),
    _row("GET", ERRORS_PATH, errors_page.show_errors, "What every error means, and what to do about it.", None, bytes,
         media=assets.PAGE, headers=errors_page.HEADERS),
    _row("GET", "/openapi.json", show_openapi, "This document.", None, dict[str, Any]),
)  # fmt: skip

HEALTH_ROUTES = tuple(row for row in ROUTES if row.path in {"/healthz", "/readyz", "/metrics", ERRORS_PATH})
"""All that a process without an API answers."""
