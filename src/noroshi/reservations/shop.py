"""The shop's desk: what the API, the pages and the command line ask of reservations in, done in one place, out."""

from datetime import timedelta

import structlog

from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.notification_jobs import Booking, CancelVerdict, JobId, JobKind, PaymentVerdict
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import Payment, ReservationId
from noroshi.domain.shop import BookedView, BookingView, Preview, SendReport
from noroshi.ports.clock import Clock
from noroshi.ports.dice import Dice
from noroshi.ports.notification_jobs import NotificationJobs
from noroshi.ports.reservations import Reservations
from noroshi.ports.signatures import Signatures
from noroshi.reservations.booked import view_booked
from noroshi.reservations.context import build_context
from noroshi.reservations.display import view_kinds
from noroshi.reservations.links import Links
from noroshi.reservations.messages import MessageBuilder
from noroshi.reservations.payments import read_event
from noroshi.reservations.scheduling import decide_cancellation, decide_confirmation, plan_jobs
from noroshi.reservations.sender import DEFAULT_LIMIT, Sender

_CODES = 10_000

_log = structlog.get_logger(__name__)


class Shop:
    """`signatures` None: Stripe is not set up here. Payments are the default tenant's."""

    def __init__(
        self,
        *,
        reservations: Reservations,
        jobs: NotificationJobs,
        sender: Sender,
        signatures: Signatures | None,
        links: Links,
        clock: Clock,
        dice: Dice,
        is_live: bool,
    ) -> None:
        self.reservations = reservations
        self._jobs = jobs
        self._sender = sender
        self._signatures = signatures
        self._links = links
        self._clock = clock
        self._dice = dice
        self._is_live = is_live
        self._messages = MessageBuilder()

    @property
    def is_on_https(self) -> bool:
        return self._links.is_on_https

    async def take_payment(self, body: bytes, signature: str | None) -> PaymentVerdict:
        """An event of Stripe's webhook, however often and in whatever order it comes (L5)."""
        if self._signatures is None:
            raise ProblemError("bad_event_signature", "No event is taken without NOROSHI_STRIPE_WEBHOOK_SECRET.")
        if not self._signatures.is_genuine(body, signature):
            raise ProblemError("bad_event_signature", "Stripe-Signature is missing, wrong, or not of this moment.")
        event = read_event(body, is_live=self._is_live)
        if event.payment is None:
            _log.info("payment_event_ignored", kind=event.event_type, code=event.verdict, reason=event.reason)
            return event.verdict
        return await self.schedule_for_reservation(DEFAULT_TENANT, event.payment)

    async def schedule_for_reservation(self, tenant: TenantId, payment: Payment) -> PaymentVerdict:
        """The initial attempt is made by the call that made the CONFIRMATION, and by no other."""
        verdict = await self._jobs.schedule_for_reservation(tenant, payment, decide_confirmation)
        if verdict not in (PaymentVerdict.CONFIRMED, PaymentVerdict.REPEATED):
            _log.warning("payment_confirmed_nothing", reservation_id=payment.reservation_id, code=verdict)
            return verdict
        _log.info("payment_taken", reservation_id=payment.reservation_id, code=verdict)
        if verdict is PaymentVerdict.CONFIRMED:
            await self._attempt(tenant, payment.reservation_id)
        return verdict

    async def schedule_cancel_completed(self, tenant: TenantId, reservation_id: ReservationId) -> CancelVerdict | None:
        """Cancels a reservation, once. None: there is no such reservation."""
        verdict = await self._jobs.schedule_cancel_completed(tenant, reservation_id, decide_cancellation)
        if verdict is CancelVerdict.PICKUP_OVER:
            raise ProblemError("conflict", "The pickup is over: it can no longer be cancelled.")
        if verdict is CancelVerdict.CANCELLED:
            _log.info("reservation_cancelled", reservation_id=reservation_id)
            await self._attempt(tenant, reservation_id)
        return verdict

    async def _attempt(self, tenant: TenantId, reservation_id: ReservationId) -> None:
        """After the commit: whatever goes wrong here, the jobs are kept, and cron comes every minute (L9)."""
        if not self._sender.is_on:
            _log.warning("line_is_off", reservation_id=reservation_id)
            return
        try:
            await self._sender.send_initially(tenant, reservation_id)
        except Exception as failure:  # noqa: BLE001 - what is committed must be answered as such
            _log.error("initial_attempt_failed", reservation_id=reservation_id, error=type(failure).__name__)

    async def send_pending_jobs(
        self, tenant: TenantId, limit: int = DEFAULT_LIMIT, *, is_dry: bool = False
    ) -> SendReport:
        return await self._sender.send_pending_jobs(tenant, limit, is_dry=is_dry)

    async def send_single_job(self, tenant: TenantId, job_id: JobId, *, is_dry: bool = False) -> SendReport | None:
        return await self._sender.send_single_job(tenant, job_id, is_dry=is_dry)

    async def longest_wait(self, tenant: TenantId) -> timedelta:
        """How long the oldest job that is due has been so: more than a few minutes, and cron stands still."""
        due = await self._jobs.list_due(tenant, None, 1)
        return timedelta(microseconds=max((due.now - facts.job.scheduled_at for facts in due.facts), default=0))

    async def preview(self, tenant: TenantId, reservation_id: ReservationId) -> Preview | None:
        """Keeps and sends nothing (L12)."""
        booking = await self.reservations.find(tenant, reservation_id)
        if booking is None:
            return None
        context = build_context(booking)
        planned = () if booking.reservation.is_cancelled else tuple(plan_jobs(booking, self._clock.now()))
        texts = {kind: self._messages.build(kind, context) for kind in JobKind}
        return Preview(context, texts, booking.jobs, planned)

    async def view_booking(self, tenant: TenantId, reservation_id: ReservationId) -> BookingView | None:
        booking = await self.reservations.find(tenant, reservation_id)
        return None if booking is None else self.show(tenant, booking)

    async def view_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[BookingView]:
        bookings = await self.reservations.list_bookings(tenant, before, limit)
        return [self.show(tenant, booking) for booking in bookings]

    def show(self, tenant: TenantId, booking: Booking) -> BookingView:
        link = self._links.url(tenant, booking.reservation.reservation_id)
        return BookingView(booking, view_kinds(booking), link)

    async def view_booked(self, tenant: TenantId, reservation_id: ReservationId) -> BookedView | None:
        booking = await self.reservations.find(tenant, reservation_id)
        return None if booking is None else view_booked(booking, self._clock.now())

    def tenant_of_link(self, token: str, reservation_id: ReservationId) -> TenantId | None:
        """Whose reservation a signed link opens."""
        return self._links.tenant(token, reservation_id)

    def new_pickup_code(self) -> str:
        """Four digits, told at the counter."""
        return f"{int(self._dice.fraction() * _CODES):04}"
