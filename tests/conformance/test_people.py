"""People: users with their sealed addresses, what they wish, and what they had lately."""

from datetime import timedelta

from noroshi.domain.people import FrequencyLimit, Preferences, QuietHours, User
from noroshi.domain.priorities import Priority
from tests.cast import HANAKO, MALLORY, STRANGER, TARO
from tests.conformance.ground import ELSEWHERE, HERE, HOUR, MINUTE, Ground

WISHES = Preferences(
    channels={"sms": False},
    categories={"marketing": True},
    quiet_hours=QuietHours(enabled=True, start="22:00", end="06:30", timezone="Europe/Paris"),
    category_channels={"social": {"email": False}},
    frequency_limit={"push": FrequencyLimit(per_hour=1, per_day=2)},
)


async def test_a_user_comes_back_as_she_was_put(ground: Ground) -> None:  # N3.5
    put = await ground.store.people.put_user(HERE, HANAKO.user)
    assert (put.created_at, put.updated_at) == (ground.now, ground.now)
    found = await ground.store.people.get_user(HERE, "hanako")
    assert found == put
    assert (found.email, found.phone, found.attributes) == (HANAKO.email, HANAKO.phone, {"plan": "gold"})


async def test_putting_a_user_again_replaces_all_but_the_time_of_creation(ground: Ground) -> None:
    first = await ground.store.people.put_user(HERE, HANAKO.user)
    ground.clock.move(HOUR)
    again = await ground.store.people.put_user(HERE, User("hanako", phone="+819000000000", is_zone_confirmed=False))
    assert (again.created_at, again.updated_at) == (first.created_at, ground.now)
    found = await ground.store.people.get_user(HERE, "hanako")
    assert found is not None
    assert (found.email, found.phone, found.name, found.attributes) == (None, "+819000000000", None, {})
    assert not found.is_zone_confirmed


async def test_a_stranger_is_not_found(ground: Ground) -> None:
    people = ground.store.people
    assert await people.get_user(HERE, STRANGER) is None
    assert await people.get_preferences(HERE, STRANGER) is None
    assert await people.usage(HERE, STRANGER) is None
    assert not await people.put_preferences(HERE, STRANGER, Preferences(), None, None)
    assert not await people.remove_user(HERE, STRANGER)


async def test_who_said_nothing_has_the_defaults(ground: Ground) -> None:  # N3.1, N3.2
    await ground.meet(HANAKO)
    found = await ground.store.people.get_preferences(HERE, "hanako")
    assert found is not None
    assert found[1] == Preferences()
    assert found[0].user_id == "hanako"


async def test_wishes_are_replaced_whole(ground: Ground) -> None:  # N3.2
    await ground.meet(HANAKO)
    await ground.wish(HANAKO, WISHES)
    found = await ground.store.people.get_preferences(HERE, "hanako")
    assert found is not None
    assert found[1] == WISHES
    await ground.wish(HANAKO, Preferences(channels={"email": False}))
    found = await ground.store.people.get_preferences(HERE, "hanako")
    assert found is not None
    assert found[1] == Preferences(channels={"email": False})


async def test_wishes_may_bring_a_locale_and_a_zone_or_leave_them(ground: Ground) -> None:  # N3.2
    await ground.meet(HANAKO)
    assert await ground.store.people.put_preferences(HERE, "hanako", Preferences(), "en-GB", "Europe/London")
    await ground.wish(HANAKO, WISHES)
    user = await ground.store.people.get_user(HERE, "hanako")
    assert user is not None
    assert (user.locale, user.timezone) == ("en-GB", "Europe/London")


async def test_putting_a_user_again_leaves_the_wishes(ground: Ground) -> None:  # N3.2
    await ground.meet(HANAKO)
    await ground.wish(HANAKO, WISHES)
    await ground.meet(HANAKO)
    found = await ground.store.people.get_preferences(HERE, "hanako")
    assert found is not None
    assert found[1] == WISHES


async def test_an_erased_user_is_gone_with_devices_and_wishes(ground: Ground) -> None:  # N17.3
    await ground.meet(HANAKO)
    await ground.wish(HANAKO, WISHES)
    assert await ground.store.people.remove_user(HERE, "hanako")
    assert await ground.store.people.get_user(HERE, "hanako") is None
    assert await ground.store.devices.list_devices(HERE, "hanako") is None
    await ground.store.people.put_user(HERE, User("hanako"))
    found = await ground.store.people.get_preferences(HERE, "hanako")
    assert found is not None
    assert (found[0].email, found[1]) == (None, Preferences())
    assert await ground.store.devices.list_devices(HERE, "hanako") == []


async def test_usage_counts_by_channel_and_forgets_as_the_windows_slide(ground: Ground) -> None:  # N8.1, N8.3
    await ground.meet(HANAKO)
    await ground.write("welcome", "email", "push")
    first = ground.now
    await ground.accept(HANAKO, channels=["email", "push"])
    ground.clock.move(40 * MINUTE)
    second = ground.now
    await ground.accept(HANAKO)
    usage = await ground.store.people.usage(HERE, "hanako")
    assert usage == {"email": (2, 2, first, first), "push": (1, 1, first, first)}
    ground.clock.move(20 * MINUTE)
    usage = await ground.store.people.usage(HERE, "hanako")
    assert usage is not None
    assert usage["email"] == (1, 2, second, first)
    assert usage["push"][:2] == (0, 1)
    ground.clock.move(timedelta(hours=23))
    usage = await ground.store.people.usage(HERE, "hanako")
    assert usage is not None
    assert usage["email"][:2] == (0, 1)
    assert "push" not in usage


async def test_critical_suppressed_and_held_ones_are_not_counted(ground: Ground) -> None:  # N8.2, N5.1
    await ground.meet(HANAKO, TARO)
    await ground.write()
    await ground.accept(HANAKO, priority=Priority.CRITICAL)
    await ground.accept(HANAKO, category="marketing")
    await ground.wish(HANAKO, Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00")))
    await ground.accept(HANAKO)
    assert await ground.store.people.usage(HERE, "hanako") == {}


async def test_the_same_id_elsewhere_is_somebody_else(ground: Ground) -> None:
    await ground.meet(HANAKO)
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    people = ground.store.people
    assert await people.get_user(ELSEWHERE, "hanako") is None
    assert await people.get_user(HERE, "mallory") is None
    assert not await people.remove_user(ELSEWHERE, "hanako")
    assert not await people.put_preferences(ELSEWHERE, "hanako", WISHES, None, None)
    await people.put_user(ELSEWHERE, User("hanako", email="other@example.com"))
    here, there = await people.get_user(HERE, "hanako"), await people.get_user(ELSEWHERE, "hanako")
    assert here is not None
    assert there is not None
    assert (here.email, there.email) == (HANAKO.email, "other@example.com")
