"""The tracker: a provider's webhook in; addresses that are used no longer, or again, out."""

from collections.abc import Mapping

import structlog

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.problems import ProblemError
from noroshi.ports.channel import Channel, ReportingChannel
from noroshi.ports.suppressions import Suppressions

_log = structlog.get_logger(__name__)


class Tracker:
    def __init__(self, channels: Mapping[str, Channel], suppressions: Suppressions) -> None:
        self._channels = channels
        self._suppressions = suppressions

    async def hear(self, account: str, headers: Mapping[str, str], raw: bytes) -> None:
        """Returns after the commit: the provider is told that we know only once we do (W24). Hearing it again changes
        nothing. Raises ProblemError `not_found`, `bad_signature` or `bad_json`."""
        channel = self._channels.get(account)
        if not isinstance(channel, ReportingChannel):
            raise ProblemError("not_found", "No provider is configured that calls here.")
        reaches = channel.read_receipts(headers, raw)
        if reaches is None:
            _log.warning("webhook_refused", account=account)
            raise ProblemError("bad_signature", "The signature is missing or was not made with the channel's secret.")
        if reaches:
            await self._suppressions.hear(DEFAULT_TENANT, reaches)
            _log.info("webhook_heard", account=account, count=len(reaches))
