"""Payloads of Courier: content and number in, the call that sends it out."""

import msgspec

from noroshi.domain.outgoing import OutgoingCall
from noroshi.domain.templates import Content
from noroshi.flow.send.sms.courier.settings import CourierSettings


def send_call(settings: CourierSettings, to: str, content: Content) -> OutgoingCall:
    return OutgoingCall(
        "POST",
        f"{settings.url}/messages",
        {"Authorization": f"Bearer {settings.token}", "Content-Type": "application/json"},
        msgspec.json.encode({"to": to, "text": content.body}),
    )
