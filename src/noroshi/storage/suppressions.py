"""StoredSuppressions: what providers say of addresses in; suppressions and endpoints that agree with it out."""

from collections.abc import Sequence

from noroshi.domain.ids import TenantId
from noroshi.domain.receipts import Reach
from noroshi.ports.sealer import Sealer
from noroshi.storage.turns import Turn, Turns


class StoredSuppressions:
    """Implements ports/suppressions.py."""

    def __init__(self, turns: Turns, sealer: Sealer) -> None:
        self._turns = turns
        self._sealer = sealer

    async def hear(self, tenant: TenantId, reaches: Sequence[Reach]) -> int:
        async def work(turn: Turn) -> int:
            blinds = {reach: self._sealer.blind_index(tenant, reach.kind, reach.address) for reach in reaches}
            # In one order, so that two webhooks that speak of the same people never wait for each other.
            in_order = sorted(blinds, key=lambda reach: (reach.kind, blinds[reach], reach.at))
            return sum([await _hear(turn, tenant, reach, blinds[reach]) for reach in in_order])

        return await self._turns.turn("hear_reach", work)


async def _hear(turn: Turn, tenant: TenantId, reach: Reach, blind: bytes) -> bool:
    address = (tenant, reach.kind, blind)
    if not await turn.has_changed("hear_reach", *address, reach.is_reachable, reach.at):
        return False
    if reach.is_reachable:
        await turn.run("lift_suppression", *address, reach.reason)
    else:
        await turn.run("suppress", *address, reach.reason, reach.at)
    await turn.run("set_endpoints_active", *address, reach.is_reachable)
    return True
