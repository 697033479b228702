"""The pages as an ASGI application: a desk in, every page and form of the shop out."""

from collections.abc import Awaitable, Callable

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.shop_pages.admin import AdminPages
from noroshi.entrypoints.shop_pages.booked import BookedPages
from noroshi.entrypoints.shop_pages.door import BOOKED, SHOP
from noroshi.entrypoints.shop_pages.drawing import page, stylesheet

_SENTENCES = {
    403: "この操作はできません。ページを開き直してから、もう一度お試しください。",
    404: "ページが見つかりません。リンクをご確認ください。",
    405: "この操作はできません。",
    409: "いまの状態では、この操作はできません。",
    413: "送信された内容が大きすぎます。",
    422: "LINEの送信設定がまだ済んでいません。",
    429: "しばらく待ってから、もう一度お試しください。",
    503: "ただいま一時的にご利用いただけません。しばらくしてから、もう一度お試しください。",
}
_BROKEN = "申し訳ございません。エラーが発生しました。"

_log = structlog.get_logger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


def build_pages(desk: Desk) -> ASGIApp:
    admin, booked = AdminPages(desk), BookedPages(desk)

    def route(method: str, path: str, endpoint: Endpoint) -> Route:
        return Route(path, _kindly(endpoint), methods=[method])

    return Starlette(
        routes=[
            route("GET", SHOP, admin.guarded(admin.show_list)),
            route("GET", f"{SHOP}/style.css", _show_style),
            route("POST", f"{SHOP}/login", admin.log_in),
            route("POST", f"{SHOP}/logout", admin.acting(admin.log_out)),
            route("POST", f"{SHOP}/send", admin.acting(admin.send_pending)),
            route("GET", f"{SHOP}/reservations/{{reservation_id}}", admin.guarded(admin.show_one)),
            route("POST", f"{SHOP}/jobs/{{job_id}}/send", admin.acting(admin.send_job)),
            route("GET", f"{BOOKED}/{{reservation_id}}", booked.show),
            route("GET", f"{BOOKED}/{{reservation_id}}/cancel", booked.ask),
            route("POST", f"{BOOKED}/{{reservation_id}}/cancel", booked.cancel),
        ],
        exception_handlers={404: _not_here, 405: _not_here},
    )


async def _show_style(_request: Request) -> Response:
    return stylesheet()


def _kindly(endpoint: Endpoint) -> Endpoint:
    """Whatever goes wrong is said in a sentence, and never in the error's own words."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ProblemError as problem:
            status = problem.kind.status
            return page("error.html", status=status, sentence=_SENTENCES.get(status, _BROKEN))
        except Exception as bug:  # noqa: BLE001 - people get a page, the log its place
            _log.error("page_failed", error=type(bug).__name__)
            return page("error.html", status=500, sentence=_BROKEN)

    return answered


async def _not_here(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return page("error.html", status=status, sentence=_SENTENCES[status])
