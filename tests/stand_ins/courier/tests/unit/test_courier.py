"""Courier: what is sent is what it documents, and every answer that it documents has its meaning."""

from pathlib import Path

import pytest

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.outgoing import Answered, NoAnswer, NotAllowed, NotSent, OutgoingReply
from noroshi.domain.templates import Content
from noroshi.flow.send.sms.courier.outcomes import outcome_of
from noroshi.flow.send.sms.courier.payload import send_call
from noroshi.flow.send.sms.courier.settings import CourierSettings

PAYLOADS = Path(__file__).parents[1] / "payloads" / "courier"
TAKEN = (PAYLOADS / "taken.json").read_bytes()


def test_a_message_is_as_courier_documents_it() -> None:
    settings = CourierSettings(token="a-token", url="https://courier.example")
    call = send_call(settings, "+819012345678", Content("Taro, parcel 17 is on its way."))
    assert call.body == (PAYLOADS / "message.json").read_bytes().strip()
    assert (call.url, call.headers["Authorization"]) == ("https://courier.example/messages", "Bearer a-token")


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Answered(202, {}, TAKEN), Sent("courier-1")),
        (Answered(202, {}, b"<html>"), Unknown("COURIER_202", "the answer cannot be read")),
        (Answered(400, {}, b""), Rejected("COURIER_400")),
        (Answered(401, {}, b""), Misconfigured("COURIER_401")),
        (Answered(404, {}, b""), Gone("COURIER_404")),
        (Answered(429, {}, b""), Retry("COURIER_429", scope=Scope.ACCOUNT)),
        (Answered(500, {}, b""), Retry("COURIER_500")),
        (Answered(418, {}, b""), Rejected("COURIER_418")),
        (NoAnswer("TIMEOUT", "too long"), Unknown("TIMEOUT", "too long")),
        (NotSent("CONNECTION_FAILED", "refused"), Retry("CONNECTION_FAILED", "refused", scope=Scope.ACCOUNT)),
        (NotAllowed("a private address"), Misconfigured("COURIER_URL", "a private address")),
    ],
    ids=str,
)
def test_every_answer_has_its_meaning(reply: OutgoingReply, outcome: Outcome) -> None:
    assert outcome_of(reply) == outcome
