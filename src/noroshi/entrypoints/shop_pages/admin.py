"""The operator's pages: reservations with the state of each notification, and the buttons that send (L4, L11, L12)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from noroshi.domain.notification_jobs import JobId
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import ReservationId
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.shop_pages import words
from noroshi.entrypoints.shop_pages.door import SHOP
from noroshi.entrypoints.shop_pages.drawing import page, redirect
from noroshi.entrypoints.shop_pages.visits import Visit, Visits, is_own_form

PER_PAGE = 30
PATIENCE = timedelta(minutes=5)
"""Cron comes every minute: what is due for longer than this, nobody sends."""

_LARGEST_FORM = 10_000

Form = dict[str, str]
Show = Callable[[Request, Visit], Awaitable[Response]]
Act = Callable[[Request, Visit, Form], Awaitable[Response]]


class AdminPages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._visits = Visits(desk)

    def guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """Whoever has no visit is asked for a key instead."""

        async def endpoint(request: Request) -> Response:
            visit = await self._visits.find(request)
            if visit is None:
                return page("login.html", status=401, is_wrong=False)
            return await show(request, visit)

        return endpoint

    def acting(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        """A form counts only if it was drawn for this very visit."""

        async def show(request: Request, visit: Visit) -> Response:
            form = await _read_form(request)
            if not is_own_form(visit, form.get("token", "")):
                raise ProblemError("forbidden", "The form is not of this visit.")
            return await act(request, visit, form)

        return self.guarded(show)

    async def log_in(self, request: Request) -> Response:
        form = await _read_form(request)
        cookie = await self._visits.open(form.get("key", "").strip(), is_secure=self._desk.shop.is_on_https)
        if cookie is None:
            return page("login.html", status=401, is_wrong=True)
        return redirect(SHOP, {"Set-Cookie": cookie})

    async def log_out(self, _request: Request, _visit: Visit, _form: Form) -> Response:
        return redirect(SHOP, {"Set-Cookie": self._visits.end()})

    async def show_list(self, request: Request, visit: Visit) -> Response:
        before = request.query_params.get("before", "")
        views = await self._desk.shop.view_bookings(
            visit.tenant, ReservationId(_number(before)) if before else None, PER_PAGE + 1
        )
        older = views[PER_PAGE - 1].booking.reservation.reservation_id if len(views) > PER_PAGE else None
        bookings = [words.show_booking(view) for view in views[:PER_PAGE]]
        is_late = await self._desk.shop.longest_wait(visit.tenant) > PATIENCE
        return page("list.html", token=visit.token, bookings=bookings, older=older, is_late=is_late)

    async def show_one(self, request: Request, visit: Visit) -> Response:
        number = ReservationId(_number(request.path_params["reservation_id"]))
        view = await self._desk.shop.view_booking(visit.tenant, number)
        if view is None:
            raise ProblemError("not_found", "There is no such reservation.")
        return page("one.html", token=visit.token, booking=words.show_booking(view))

    async def send_pending(self, _request: Request, visit: Visit, form: Form) -> Response:
        report = await self._desk.shop.send_pending_jobs(visit.tenant, is_dry=form.get("how") != "send")
        return page("report.html", token=visit.token, report=words.show_report(report), back=SHOP)

    async def send_job(self, request: Request, visit: Visit, _form: Form) -> Response:
        job_id = JobId(_number(request.path_params["job_id"]))
        report = await self._desk.shop.send_single_job(visit.tenant, job_id)
        if report is None:
            raise ProblemError("not_found", "There is no such job.")
        back = f"{SHOP}/reservations/{report.results[0].reservation_id}"
        return page("report.html", token=visit.token, report=words.show_report(report), back=back)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ProblemError("not_found", "That is no number of anything here.")
    return int(text)


async def _read_form(request: Request) -> Form:
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > _LARGEST_FORM:
            raise ProblemError("too_large", "The form is too large.")
    return dict(parse_qsl(raw.decode("utf-8", "replace")))
