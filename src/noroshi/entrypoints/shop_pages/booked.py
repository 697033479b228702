"""The customer's pages: a signed link in; the reservation, and a way to cancel it, out (L12, L14)."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from noroshi.domain.ids import TenantId
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import ReservationId
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.shop_pages import words
from noroshi.entrypoints.shop_pages.door import BOOKED
from noroshi.entrypoints.shop_pages.drawing import page, redirect


class BookedPages:
    def __init__(self, desk: Desk) -> None:
        self._shop = desk.shop

    async def show(self, request: Request) -> Response:
        return await self._draw(request, "booked.html")

    async def ask(self, request: Request) -> Response:
        """Looking at a page never cancels anything."""
        return await self._draw(request, "cancel.html")

    async def cancel(self, request: Request) -> Response:
        tenant, number, token = self._opened(request)
        await self._shop.schedule_cancel_completed(tenant, number)
        return redirect(f"{BOOKED}/{number}?token={quote(token)}")

    async def _draw(self, request: Request, name: str) -> Response:
        tenant, number, token = self._opened(request)
        view = await self._shop.view_booked(tenant, number)
        if view is None:
            raise _unknown()
        return page(name, booked=words.show_booked(view), token=token)

    def _opened(self, request: Request) -> tuple[TenantId, ReservationId, str]:
        text, token = request.path_params["reservation_id"], request.query_params.get("token", "")
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            raise _unknown()
        tenant = self._shop.tenant_of_link(token, ReservationId(int(text)))
        if tenant is None:
            raise _unknown()
        return tenant, ReservationId(int(text)), token


def _unknown() -> ProblemError:
    """The same for a reservation that is not there and for a link that is wrong."""
    return ProblemError("not_found", "The link opens no reservation.")
