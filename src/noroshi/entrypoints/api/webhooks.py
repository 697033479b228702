"""Webhooks over the API: what a provider says later, as it came, in; that we know it out."""

from msgspec import Struct

from noroshi.entrypoints.api.calls import Call, NoQuery, RawBody
from noroshi.entrypoints.api.desk import Desk


class HeardAnswer(Struct, frozen=True):
    """Answered after the commit."""

    ok: bool = True


async def hear_webhook(desk: Desk, call: Call[NoQuery, RawBody]) -> HeardAnswer:
    await desk.hear(call.path["account"], call.body.headers, call.body.raw)
    return HeardAnswer()
