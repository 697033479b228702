"""Stripe's events: the bytes of a webhook in, the payment they tell of, or why they tell of none, out (L5)."""

from typing import Any

import msgspec
from msgspec import Struct, field

from noroshi.domain.notification_jobs import PaymentVerdict
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import Payment, ReservationId

SESSION_COMPLETED = "checkout.session.completed"
INTENT_SUCCEEDED = "payment_intent.succeeded"

_LONGEST_NUMBER = 18


class _Money(Struct):
    """A checkout session or a payment intent, as far as it is read here. What a session's `payment_intent` is depends
    on the endpoint: an id, or the whole thing."""

    id: str = ""
    metadata: dict[str, Any] | None = None
    currency: str | None = None
    payment_status: str | None = None
    amount_total: int | None = None
    amount_received: int | None = None
    payment_intent: Any = None


class _Content(Struct):
    object: _Money = field(default_factory=_Money)


class _Envelope(Struct):
    """What every event has, whatever it is about."""

    type: str


class _Event(Struct):
    id: str
    type: str
    livemode: bool
    data: _Content


class EventReading(Struct, frozen=True):
    """`payment` None: `verdict` and `reason` say why."""

    event_type: str
    payment: Payment | None = None
    verdict: PaymentVerdict = PaymentVerdict.IGNORED
    reason: str = ""


_open = msgspec.json.Decoder(_Envelope).decode
_decode = msgspec.json.Decoder(_Event).decode


def read_event(body: bytes, *, is_live: bool) -> EventReading:
    """Of an event whose signature was right. What another event is made of is no matter."""
    try:
        kind = _open(body).type
        if kind not in (SESSION_COMPLETED, INTENT_SUCCEEDED):
            return EventReading(kind, reason="another event")
        event = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ProblemError("bad_json", "The body is not an event of Stripe.") from None
    money = event.data.object
    if event.type == SESSION_COMPLETED:
        amount, reference = money.amount_total, _intent_of(money)
    else:
        amount, reference = money.amount_received, money.id
    if event.livemode is not is_live:
        return EventReading(event.type, verdict=PaymentVerdict.WRONG_MODE, reason="livemode unlike the setting")
    if event.type == SESSION_COMPLETED and money.payment_status != "paid":
        return EventReading(event.type, reason="not paid yet")
    number = str((money.metadata or {}).get("reservation_id", ""))
    if not (number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER):
        return EventReading(event.type, verdict=PaymentVerdict.UNKNOWN_RESERVATION, reason="no reservation_id")
    payment = Payment(ReservationId(int(number)), amount or 0, money.currency or "", reference)
    return EventReading(event.type, payment)


def _intent_of(session: _Money) -> str:
    intent = session.payment_intent
    found = intent.get("id") if isinstance(intent, dict) else intent
    return found if isinstance(found, str) and found else session.id
