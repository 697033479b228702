"""API keys: kept without their secrets, found by their public id, revoked for good (N4.5)."""

import pytest

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import plus
from noroshi.domain.records import ApiKey, KeyScope
from tests.conformance.ground import ELSEWHERE, HERE, HOUR, Ground


def a_key(ground: Ground, key_id: str, tenant: TenantId = HERE) -> ApiKey:
    return ApiKey(
        key_id=key_id,
        tenant=tenant,
        name="shop",
        scopes=(KeyScope.SEND, KeyScope.READ),
        digest=b"d" * 32,
        created_at=ground.now,
        expires_at=plus(ground.now, HOUR),
        per_minute=60,
    )


async def test_a_key_comes_back_as_it_was_added(ground: Ground) -> None:
    key = a_key(ground, "abcdefgh")
    await ground.store.keys.add(key)
    assert await ground.store.keys.find("abcdefgh") == key
    assert await ground.store.keys.find("ABCDEFGH") is None
    assert await ground.store.keys.list_keys(HERE) == [key]


async def test_a_key_without_end_or_limit_has_none(ground: Ground) -> None:
    key = ApiKey("abcdefgh", HERE, "shop", (KeyScope.ADMIN,), b"d" * 32, ground.now)
    await ground.store.keys.add(key)
    assert await ground.store.keys.find("abcdefgh") == key


async def test_keys_are_listed_in_the_order_of_their_making(ground: Ground) -> None:
    for name in ("zzzzzzzz", "aaaaaaaa"):
        await ground.store.keys.add(a_key(ground, name))
        ground.clock.move(HOUR)
    assert [key.key_id for key in await ground.store.keys.list_keys(HERE)] == ["zzzzzzzz", "aaaaaaaa"]


async def test_a_revoked_key_stays_revoked(ground: Ground) -> None:
    await ground.store.keys.add(a_key(ground, "abcdefgh"))
    revoked_at = ground.now
    assert await ground.store.keys.revoke(HERE, "abcdefgh")
    ground.clock.move(HOUR)
    assert not await ground.store.keys.revoke(HERE, "abcdefgh")
    found = await ground.store.keys.find("abcdefgh")
    assert found is not None
    assert found.revoked_at == revoked_at


async def test_the_same_public_id_is_not_given_twice(ground: Ground) -> None:
    await ground.store.keys.add(a_key(ground, "abcdefgh"))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await ground.store.keys.add(a_key(ground, "abcdefgh"))


async def test_another_tenants_keys_can_be_neither_listed_nor_revoked(ground: Ground) -> None:
    await ground.store.keys.add(a_key(ground, "mine0000"))
    await ground.store.keys.add(a_key(ground, "theirs00", ELSEWHERE))
    assert [key.key_id for key in await ground.store.keys.list_keys(HERE)] == ["mine0000"]
    assert not await ground.store.keys.revoke(ELSEWHERE, "mine0000")
    found = await ground.store.keys.find("theirs00")
    assert found is not None
    assert found.tenant == ELSEWHERE
