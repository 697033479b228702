"""The inbox as a channel: attempts in, drafts for the settling commit out; nothing leaves, and nothing is written but
the copy that the catcher keeps where it is on."""

from collections.abc import Sequence
from datetime import timedelta

from noroshi.domain.deliveries import Attempt
from noroshi.domain.inbox import Draft
from noroshi.domain.outcomes import Kept, Outcome
from noroshi.flow.send.in_app.inbox.payload import payload_of
from noroshi.flow.send.in_app.inbox.settings import INBOX_SETTING, read_inbox_settings
from noroshi.flow.send.parts import Off, Parts
from noroshi.ports.caught import Caught


class InboxChannel:
    """There is no gap between sending and recording, so no crash can double or lose an entry. Where the catcher is
    on it gets a copy, so that it has one of everything."""

    account = "inbox"
    channels = frozenset({"in_app"})
    max_batch = 500
    attempt_timeout = timedelta(seconds=2)
    per_second = None
    repeats_within = timedelta(days=36_500)
    """For ever: a claim without an outcome was never sent."""

    def __init__(self, copies: Caught | None = None) -> None:
        self._copies = copies

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        if self._copies is not None:
            await self._copies.keep_caught(attempts)
        return [_kept(attempt) for attempt in attempts]

    def validate_target(self, address: str) -> str | None:  # noqa: ARG002
        return None


def _kept(attempt: Attempt) -> Outcome:
    payload = payload_of(attempt.content)
    if not isinstance(payload, str):
        return payload
    return Kept(Draft(attempt.recipient.user_id, attempt.category, payload))


def open_inbox(parts: Parts) -> InboxChannel | Off:
    if not read_inbox_settings(parts.values).is_on:
        return Off(f"{INBOX_SETTING} is `off`")
    return InboxChannel(parts.caught if parts.values.get("NOROSHI_CATCHER") == "on" else None)
