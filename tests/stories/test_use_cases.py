"""The four use cases of the demonstration, and its six fates, as people and operators meet them."""

from datetime import timedelta
from typing import Any

import pytest

from noroshi.client import Noroshi, NoroshiError
from noroshi.entrypoints.cli.demonstration.fates import FATES, Told, _make, bring_about
from noroshi.entrypoints.cli.demonstration.seeding import seed
from tests.stories.world import World, bodies, kinds

ORDER = {
    "order_id": "A-17",
    "carrier": "Kuroneko",
    "arrives": "3/4",
    "items": [{"name": "<Candle>", "count": 2, "price": "¥600"}],
    "total": "¥1,200",
}
CODE = {"code": "481516", "minutes": 10}
SALE = {"percent": 20, "until": "3/20"}
COMMENT = {"who": "Kenji", "what": "snow.jpg", "text": "Beautiful"}


@pytest.fixture
def world(build: Any) -> World:
    made: World = build()
    made.run(seed(inside(made)))
    return made


def inside(world: World) -> Noroshi:
    return Noroshi.inside(world.app, world.mint())


def test_an_order_reaches_people_on_every_channel_they_have_in_their_language(world: World) -> None:  # N1, N2.3
    world.tell("hanako", "alice", template_id="order-shipped", category="transaction", data=ORDER)
    got = {(m["user_id"], m["channel"]): m for m in world.caught()}
    assert set(got) == {
        ("hanako", "email"),
        ("hanako", "push"),
        ("hanako", "sms"),
        ("alice", "email"),
        ("alice", "sms"),
    }
    assert got["hanako", "email"]["subject"] == "ご注文 A-17 を発送しました"
    assert got["alice", "email"]["subject"] == "Your order A-17 is on its way"
    html = got["alice", "email"]["metadata"]["html_body"]
    assert "&lt;Candle&gt;" in html
    assert "<Candle>" not in html
    assert got["hanako", "push"]["metadata"]["data"] == {"link": "shop://orders/A-17"}


def test_a_one_time_code_comes_in_the_night_and_never_too_late(world: World) -> None:  # N3.6
    night = {"enabled": True, "start": "00:00", "end": "23:59", "timezone": "Europe/London"}
    world.put("/api/v1/users/alice/notification-preferences", {"quiet_hours": night})
    request = {
        "template_id": "security-code",
        "category": "one_time_code",
        "channels": ["sms"],
        "priority": "critical",
    }
    world.tell("alice", data=CODE, **request)
    assert bodies(world.caught()) == ["Your code is 481516. It is good for 10 minutes. Tell nobody."]
    pause = world.post("/api/v1/pauses", {"kind": "channel", "name": "sms"})
    late = world.tell("alice", data=CODE | {"code": "2342"}, **request)
    world.advance(timedelta(minutes=11))
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.advance(timedelta(minutes=1))
    assert world.reasons(late) == {("alice", "sms"): "expired"}
    assert len(world.caught()) == 1


def test_a_campaign_reaches_only_those_who_said_yes(world: World) -> None:  # N3.6
    everybody = [person["user_id"] for person in world.listed("/api/v1/users")]
    batch_id = world.tell(*everybody, template_id="spring-sale", category="marketing", channels=["email"], data=SALE)
    assert [m["user_id"] for m in world.caught()] == ["hanako"]
    noes = {user: reason for (user, _), reason in world.reasons(batch_id).items() if reason is not None}
    assert len(noes) == 7
    assert set(noes.values()) == {"category_off"}


def test_social_news_stays_within_what_a_person_allows(world: World) -> None:  # N8
    fates = [
        world.tell(
            "yuki", template_id="new-comment", category="social", channels=["push"], data=COMMENT | {"text": text}
        )
        for text in ("one", "two", "three")
    ]
    assert [world.reasons(batch_id)["yuki", "push"] for batch_id in fates] == [None, "rate_limited", "rate_limited"]
    world.advance(timedelta(minutes=61))
    later = world.tell(
        "yuki", template_id="new-comment", category="social", channels=["push"], data=COMMENT | {"text": "four"}
    )
    assert world.status(later) == "SENT"
    assert bodies(world.caught())[-1] == "「four」（snow.jpg）"


def fates(world: World) -> list[Told]:
    told: list[Told] = world.run(bring_about(inside(world), world.clock, world.noroshi.caught_channels))
    world.until_idle()
    return told


def test_the_demonstration_has_one_of_each_fate(world: World) -> None:  # issue 4
    told = {one.title.partition(":")[0]: world.notifications(one.batch_id) for one in fates(world)}
    assert list(told) == [fate.title.partition(":")[0] for fate in FATES]
    assert len(told) == 6
    assert {n["status"] for n in told["sent"]} == {"SENT"}
    assert {n["channel"] for n in told["sent"]} == {"email", "push", "sms"}
    (deferred,) = told["deferred"]
    assert (deferred["status"], deferred["reason"]) == ("SCHEDULED", "quiet_hours")
    assert [n["reason"] for n in told["suppressed"]] == ["category_off"]
    assert [n["reason"] for n in told["rate-limited"]] == ["rate_limited"]
    assert kinds(told["dead-lettered"][0]) == ["queued", "dead_lettered"]
    assert kinds(told["retried, then sent"][0]) == ["queued", "failed", "sent"]
    assert all(entry["sentence"] for found in told.values() for n in found for entry in n["trail"])


def test_a_second_demonstration_adds_nothing(world: World) -> None:  # issue 4
    first = fates(world)
    before = [world.listed(f"/api/v1/{name}") for name in ("notifications", "users", "templates")]
    world.restart(timedelta(days=2))
    world.run(seed(inside(world)))
    assert fates(world) == first
    after = [world.listed(f"/api/v1/{name}") for name in ("notifications", "users", "templates")]
    assert [len(items) for items in after] == [len(items) for items in before]


def test_the_catcher_behaves_again_even_if_a_fate_could_not_be_brought_about(world: World) -> None:
    client = inside(world)

    async def send(*_words: Any, **_fields: Any) -> None:
        raise NoroshiError("overloaded", "Too much is waiting.", "Come again.")

    client.send = send  # type: ignore[assignment, method-assign]
    misbehaving = next(fate for fate in FATES if fate.fault is not None)
    with pytest.raises(NoroshiError):
        world.run(_make(client, misbehaving, world.clock))
    batch_id = world.tell("kenji", template_id="order-shipped", category="transaction", channels=["push"], data=ORDER)
    assert world.status(batch_id) == "SENT"


def test_nothing_is_sent_to_made_up_people_by_a_real_provider(build: Any) -> None:
    world: World = build(smtp_url="smtp://relay.example.com", smtp_from="Shop <shop@example.com>")
    world.run(seed(inside(world)))
    titles = [one.title.partition(":")[0] for one in fates(world)]
    assert titles == ["deferred", "rate-limited", "dead-lettered", "retried, then sent"]
    assert [n for n in world.listed("/api/v1/notifications") if "email" in n["channels"]] == []


def test_what_was_deferred_comes_when_the_quiet_hours_end(world: World) -> None:  # N3.4
    deferred = next(one for one in fates(world) if one.title.startswith("deferred"))
    world.advance(timedelta(hours=10))
    assert kinds(world.notification(deferred.batch_id)) == ["deferred", "released", "queued", "sent"]
