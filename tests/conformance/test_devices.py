"""Devices: an idempotent upsert of push tokens, which a provider may declare gone (N1.11, N1.14)."""

import pytest

from noroshi.domain.deliveries import Verdict
from tests.cast import HANAKO, MALLORY, STRANGER
from tests.conformance.ground import ELSEWHERE, HERE, HOUR, PUSH, Ground

TOKEN = "a-token"


@pytest.fixture(autouse=True)
async def hanako_without_devices(ground: Ground) -> None:
    await ground.store.people.put_user(HERE, HANAKO.user)


async def test_a_registered_device_is_listed_as_it_is(ground: Ground) -> None:  # N1.14
    device = await ground.store.devices.register(HERE, "hanako", "android", TOKEN, "1.2.3")
    assert device is not None
    assert (device.platform, device.device_token, device.app_version) == ("android", TOKEN, "1.2.3")
    assert (device.is_active, device.created_at, device.last_used_at) == (True, ground.now, ground.now)
    assert await ground.store.devices.list_devices(HERE, "hanako") == [device]


async def test_the_same_token_again_refreshes_the_device(ground: Ground) -> None:  # N1.11
    first = await ground.store.devices.register(HERE, "hanako", "ios", TOKEN, "1.0")
    ground.clock.move(HOUR)
    again = await ground.store.devices.register(HERE, "hanako", "ios", TOKEN, "1.1")
    assert first is not None
    assert again is not None
    assert (again.token_id, again.created_at, again.last_used_at) == (first.token_id, first.created_at, ground.now)
    assert await ground.store.devices.list_devices(HERE, "hanako") == [again]


async def test_every_other_token_is_another_device(ground: Ground) -> None:  # N1.10
    devices = [await ground.store.devices.register(HERE, "hanako", "ios", f"token-{n}", None) for n in range(3)]
    listed = await ground.store.devices.list_devices(HERE, "hanako")
    assert listed == devices
    assert len({device.token_id for device in listed}) == 3


async def test_registering_again_reactivates_a_device_that_was_gone(ground: Ground) -> None:  # N1.11
    await ground.write("welcome", "push")
    await ground.store.devices.register(HERE, "hanako", "ios", TOKEN, None)
    await ground.accept(HANAKO, channels=["push"])
    await ground.settle(await ground.claim(PUSH), Verdict.DEAD, code="UNREGISTERED", is_gone=True)
    (gone,) = await ground.store.devices.list_devices(HERE, "hanako") or []
    assert not gone.is_active
    back = await ground.store.devices.register(HERE, "hanako", "ios", TOKEN, None)
    assert back is not None
    assert (back.token_id, back.is_active) == (gone.token_id, True)
    assert [device.is_active for device in await ground.store.devices.list_devices(HERE, "hanako") or []] == [True]


async def test_the_number_of_a_removed_device_is_never_given_to_another(ground: Ground) -> None:  # N1.11
    """Else a late `gone` for the old token would switch off the new one."""
    old = await ground.store.devices.register(HERE, "hanako", "ios", "token-1", None)
    assert old is not None
    assert await ground.store.devices.remove_device(HERE, "hanako", old.token_id)
    assert not await ground.store.devices.remove_device(HERE, "hanako", old.token_id)
    new = await ground.store.devices.register(HERE, "hanako", "ios", "token-2", None)
    assert new is not None
    assert new.token_id != old.token_id


async def test_addresses_are_no_devices(ground: Ground) -> None:
    assert await ground.store.devices.list_devices(HERE, "hanako") == []
    for number in range(10):
        assert not await ground.store.devices.remove_device(HERE, "hanako", number)
    user = await ground.store.people.get_user(HERE, "hanako")
    assert user is not None
    assert user.email == HANAKO.email


async def test_putting_a_user_again_leaves_the_devices(ground: Ground) -> None:
    device = await ground.store.devices.register(HERE, "hanako", "web", TOKEN, None)
    await ground.store.people.put_user(HERE, HANAKO.user)
    assert await ground.store.devices.list_devices(HERE, "hanako") == [device]


async def test_a_stranger_has_no_devices(ground: Ground) -> None:
    assert await ground.store.devices.register(HERE, STRANGER, "ios", TOKEN, None) is None
    assert await ground.store.devices.list_devices(HERE, STRANGER) is None


async def test_another_tenant_neither_sees_nor_removes_a_device(ground: Ground) -> None:
    device = await ground.store.devices.register(HERE, "hanako", "ios", TOKEN, None)
    assert device is not None
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    assert await ground.store.devices.list_devices(ELSEWHERE, "hanako") is None
    assert await ground.store.devices.register(ELSEWHERE, "hanako", "ios", TOKEN, None) is None
    assert not await ground.store.devices.remove_device(ELSEWHERE, "hanako", device.token_id)
    assert not await ground.store.devices.remove_device(HERE, "mallory", device.token_id)
