"""Provider accounts: until when each must be left alone, also after a restart."""

from noroshi.domain.instants import plus
from tests.conformance.ground import MINUTE, SECOND, Ground


async def test_an_account_is_left_alone_until_its_time(ground: Ground) -> None:  # N6.1
    assert await ground.store.accounts.blocked() == {}
    until = plus(ground.now, MINUTE)
    await ground.store.accounts.block("acme", until, "retry_after")
    assert await ground.store.accounts.blocked() == {"acme": until}
    ground.clock.move(MINUTE - SECOND)
    assert await ground.store.accounts.blocked() == {"acme": until}
    ground.clock.move(SECOND)
    assert await ground.store.accounts.blocked() == {}


async def test_the_later_time_wins(ground: Ground) -> None:
    soon, late = plus(ground.now, SECOND), plus(ground.now, MINUTE)
    await ground.store.accounts.block("acme", late, "retry_after")
    await ground.store.accounts.block("acme", soon, "retry_after")
    await ground.store.accounts.block("other", soon, "bad_key")
    assert await ground.store.accounts.blocked() == {"acme": late, "other": soon}
