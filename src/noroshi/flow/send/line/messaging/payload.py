"""Payloads: content in, LINE's message and the call that pushes it out."""

import re
from datetime import timedelta
from uuid import UUID, uuid5

import msgspec

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.outgoing import OutgoingCall
from noroshi.domain.templates import Content
from noroshi.flow.send.line.messaging.settings import LineSettings

LONGEST_TEXT = 5_000
"""In UTF-16 code units, as LINE counts: an emoji is two."""

_PUSH = "/v2/bot/message/push"
_USER_ID = re.compile(r"U[0-9a-f]{32}")
_OURS = UUID("6f1e0c7a-52f4-5d0c-9a43-1c0e3a7b9d21")
"""The namespace of our retry keys. Never changed: a delivery would get another key and could be sent twice."""

_encode = msgspec.json.Encoder().encode


def is_user_id(address: str) -> bool:
    return _USER_ID.fullmatch(address) is not None


def text_of(content: Content) -> str:
    return f"{content.title}\n\n{content.body}" if content.title else content.body


def length_of(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def retry_key(key: DeliveryKey) -> UUID:
    """The same on every try of a delivery, from whatever process: LINE takes what has it once in 24 hours."""
    return uuid5(_OURS, f"{key.tenant}/{key.notification_id.hex()}/{key.endpoint_id}")


def push_call(settings: LineSettings, to: str, text: str, key: UUID, timeout: timedelta) -> OutgoingCall:
    return OutgoingCall(
        "POST",
        settings.url + _PUSH,
        {**_credentials(settings), "Content-Type": "application/json", "X-Line-Retry-Key": str(key)},
        _encode({"to": to, "messages": [{"type": "text", "text": text}]}),
        timeout,
    )


def question(settings: LineSettings, path: str, timeout: timedelta) -> OutgoingCall:
    return OutgoingCall("GET", settings.url + path, _credentials(settings), timeout=timeout)


def _credentials(settings: LineSettings) -> dict[str, str]:
    return {"Authorization": f"Bearer {settings.token}"}
