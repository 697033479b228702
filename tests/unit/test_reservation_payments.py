"""Stripe's webhook (L5): whose bytes they are, and which payment they tell of."""

import time
from typing import Any

import msgspec
import pytest
import stripe

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.notification_jobs import PaymentVerdict
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import Payment, ReservationId
from noroshi.machine import stripe_signatures
from noroshi.machine.stripe_signatures import StripeMissingError, StripeSignatures
from noroshi.reservations.links import Links
from noroshi.reservations.payments import read_event

SECRET = "whsec_of_the_shop"
NOW = 1_772_000_000
BODY = '{"id":"evt_1","name":"米"}'.encode()


class FixedClock:
    def now(self) -> Instant:
        return Instant(NOW * 1_000_000)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, span: object) -> None:
        raise NotImplementedError


def signed(body: bytes = BODY, secret: str = SECRET, at: int = NOW) -> str:
    return stripe.WebhookSignature.generate_signature_header(body.decode(), secret, at)


SIGNATURES = StripeSignatures([SECRET, "whsec_of_before"], FixedClock())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "header",
    [
        signed(),
        signed(secret="whsec_of_before"),
        f"{signed()},v1=0000",
        f"{signed()},v0=0000",
        signed(at=NOW - 300),
        signed(at=NOW + 300),
    ],
)
def test_what_stripe_signed_is_genuine(header: str) -> None:
    # L5; two secrets while one is replaced
    assert SIGNATURES.is_genuine(BODY, header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "t=",
        "v1=0000",
        "t=x,v1=0000",
        f"t={NOW}",
        f"t={NOW},v1=",
        f"t={NOW},v1=米",
        signed(secret="whsec_of_somebody_else"),
        signed(secret=""),
        signed(BODY + b" "),
        signed().replace("v1", "v0"),
        signed(at=NOW - 301),
        signed(at=NOW + 301),
        # an old signature dressed up as a new one: whichever `t` the library takes must be the one that is judged
        f"t={NOW - 900}=,t={NOW}," + signed(at=NOW - 900).partition(",")[2],
        f"t={NOW},t={NOW - 900}," + signed(at=NOW - 900).partition(",")[2],
        f"t={NOW - 900},t={NOW}," + signed(at=NOW - 900).partition(",")[2],
    ],
)
def test_what_is_forged_altered_old_or_from_the_future_is_not(header: str | None) -> None:
    # L5
    assert not SIGNATURES.is_genuine(BODY, header)


def test_the_vector_of_stripes_own_library() -> None:
    # L5, providers.md 13
    class ThatMoment(FixedClock):
        def now(self) -> Instant:
            return Instant(1_700_000_000_000_000)

    signatures = StripeSignatures(["whsec_testsecret"], ThatMoment())  # type: ignore[arg-type]
    body = b'{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}'
    digest = "020549498c68fde34b82deeefe8036dc6728b930be734762399c3063c8835c4b"
    assert signatures.is_genuine(body, f"t=1700000000,v1={digest}")
    assert not signatures.is_genuine(body, f"t=1700000000,v1={digest[:-1]}c")


def test_a_body_that_is_no_text_is_not_genuine() -> None:
    assert not SIGNATURES.is_genuine(b"\xff", signed())


def test_the_library_alone_would_take_a_signature_from_the_future() -> None:
    # why the age is judged here
    body, far_ahead = '{"object":"event"}', int(time.time()) + 10**6
    header = stripe.WebhookSignature.generate_signature_header(body, SECRET, far_ahead)
    assert stripe.Webhook.construct_event(body, header, SECRET)


def test_without_the_library_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> Any:
        raise ImportError

    monkeypatch.setattr(stripe_signatures, "import_module", absent)
    with pytest.raises(StripeMissingError, match="pip install"):
        StripeSignatures([SECRET], FixedClock())  # type: ignore[arg-type]


# events


def event(kind: str, *, is_live: bool = True, **of: Any) -> bytes:
    return msgspec.json.encode({"id": "evt_1", "type": kind, "livemode": is_live, "data": {"object": of}})


SESSION = {
    "id": "cs_1",
    "metadata": {"reservation_id": "237"},
    "payment_status": "paid",
    "amount_total": 9_500,
    "currency": "jpy",
    "payment_intent": "pi_1",
}
INTENT = {"id": "pi_1", "metadata": {"reservation_id": "237"}, "amount_received": 9_500, "currency": "jpy"}
PAID = Payment(ReservationId(237), 9_500, "jpy", "pi_1")
COMPLETED, SUCCEEDED = "checkout.session.completed", "payment_intent.succeeded"


@pytest.mark.parametrize(
    "body",
    [
        event(COMPLETED, **SESSION),
        event(COMPLETED, **{**SESSION, "payment_intent": {"id": "pi_1", "object": "payment_intent"}}),
        event(SUCCEEDED, **INTENT),
    ],
)
def test_both_events_tell_of_the_same_payment(body: bytes) -> None:
    # L5
    assert read_event(body, is_live=True).payment == PAID


def test_a_session_without_an_intent_is_named_itself() -> None:
    found = read_event(event(COMPLETED, **{**SESSION, "payment_intent": None}), is_live=True)
    assert found.payment == Payment(ReservationId(237), 9_500, "jpy", "cs_1")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (event("charge.refunded", **INTENT), PaymentVerdict.IGNORED),
        (b'{"object":"v2.core.event","type":"v1.billing.meter.no_meter_found"}', PaymentVerdict.IGNORED),
        (event("customer.updated", id=5, metadata="of another kind", currency=None), PaymentVerdict.IGNORED),
        (event(COMPLETED, **{**SESSION, "payment_status": "unpaid"}), PaymentVerdict.IGNORED),
        (event(COMPLETED, **{**SESSION, "payment_status": "no_payment_required"}), PaymentVerdict.IGNORED),
        (event(SUCCEEDED, is_live=False, **INTENT), PaymentVerdict.WRONG_MODE),
        (event(SUCCEEDED, **{**INTENT, "metadata": None}), PaymentVerdict.UNKNOWN_RESERVATION),
        (event(SUCCEEDED, **{**INTENT, "metadata": {}}), PaymentVerdict.UNKNOWN_RESERVATION),
        *(
            (event(SUCCEEDED, **{**INTENT, "metadata": {"reservation_id": text}}), PaymentVerdict.UNKNOWN_RESERVATION)
            for text in ("", "x", "-1", "1.5", "２３７", "9" * 19)
        ),
    ],
)
def test_what_tells_of_no_payment_is_answered_and_not_acted_on(body: bytes, verdict: PaymentVerdict) -> None:
    # L5
    found = read_event(body, is_live=True)
    assert (found.payment, found.verdict) == (None, verdict)


def test_test_mode_confirms_where_the_setting_says_so() -> None:
    # L5
    assert read_event(event(SUCCEEDED, is_live=False, **INTENT), is_live=False).payment == PAID
    assert read_event(event(SUCCEEDED, **INTENT), is_live=False).verdict is PaymentVerdict.WRONG_MODE


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"id":1}', b'{"type":"payment_intent.succeeded"}', b"[" * 100_000]
)
def test_a_signed_body_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(ProblemError) as caught:
        read_event(body, is_live=True)
    assert caught.value.kind.code == "bad_json"


# links

LINKS = Links(b"pepper", "https://rice.example.com")
HERE, NUMBER = TenantId(1), ReservationId(237)


def test_a_link_opens_its_own_reservation_only() -> None:
    # L12
    token = LINKS.token(HERE, NUMBER)
    assert LINKS.tenant(token, NUMBER) == HERE
    assert LINKS.tenant(token, ReservationId(238)) is None
    assert LINKS.url(HERE, NUMBER) == f"https://rice.example.com/booked/237?token={token}"


def test_no_altered_link_opens_anything() -> None:
    # L12
    token = LINKS.token(HERE, NUMBER)
    altered = [token[:n] + ("A" if token[n] != "A" else "B") + token[n + 1 :] for n in range(len(token))]
    for one in [*altered, "", "1.", token + "A", token[:-1], token.replace("1.", "2.", 1), f"{token}\n", "é"]:
        assert LINKS.tenant(one, NUMBER) is None, one
    assert Links(b"another", "https://rice.example.com").tenant(token, NUMBER) is None
