"""Webhooks as LINE sends them: who followed or left goes in, a signed body comes out."""

import hmac
from base64 import b64encode
from typing import Any

from tests.stand_ins.line.process import SECRET

DESTINATION = "U0123456789abcdef0123456789abcdef"


def signature(raw: bytes, secret: str = SECRET) -> str:
    return b64encode(hmac.digest(secret.encode(), raw, "sha256")).decode()


def following(user_id: str, at_ms: int) -> dict[str, Any]:
    return _webhook({"type": "follow", "replyToken": "reply", "follow": {"isUnblocked": True}}, user_id, at_ms)


def unfollowing(user_id: str, at_ms: int) -> dict[str, Any]:
    return _webhook({"type": "unfollow"}, user_id, at_ms)


def _webhook(event: dict[str, Any], user_id: str, at_ms: int) -> dict[str, Any]:
    common = {
        "mode": "active",
        "timestamp": at_ms,
        "source": {"type": "user", "userId": user_id},
        "webhookEventId": f"01{at_ms:024}",
        "deliveryContext": {"isRedelivery": False},
    }
    return {"destination": DESTINATION, "events": [event | common]}
