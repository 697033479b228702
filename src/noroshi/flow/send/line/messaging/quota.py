"""The plan's quota: LINE's two answers about it in, one Quota out."""

from datetime import timedelta
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from noroshi.domain.outgoing import Answered, OutgoingReply
from noroshi.domain.quotas import Quota
from noroshi.flow.send.line.messaging.payload import question
from noroshi.flow.send.line.messaging.settings import LineSettings
from noroshi.ports.outgoing import Outgoing

_WITHIN = timedelta(seconds=3)
_QUOTA = "/v2/bot/message/quota"
_CONSUMPTION = "/v2/bot/message/quota/consumption"


class _Plan(Struct, frozen=True):
    type: Literal["limited", "none"]
    value: int = 0


class _Consumption(Struct, frozen=True):
    totalUsage: int  # noqa: N815 - LINE's spelling


S = TypeVar("S", bound=Struct)


async def ask_quota(settings: LineSettings, outgoing: Outgoing) -> Quota | None:
    """None: LINE did not say."""
    plan = _read(await outgoing.call(question(settings, _QUOTA, _WITHIN)), _Plan)
    used = _read(await outgoing.call(question(settings, _CONSUMPTION, _WITHIN)), _Consumption)
    if plan is None or used is None:
        return None
    return Quota(used.totalUsage, plan.value if plan.type == "limited" else None)


def _read(reply: OutgoingReply, kind: type[S]) -> S | None:
    if not isinstance(reply, Answered) or reply.status != 200:
        return None
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
