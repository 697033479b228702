"""Templates: versions, locales and what one recipient's trouble means for the others (N2)."""

import pytest

from tests.cast import ALICE, HANAKO, PIERRE, SAKURA, TARO
from tests.stories.world import World, bodies


def test_each_person_reads_the_nearest_locale_there_is(world: World) -> None:  # N2.3
    world.meet(HANAKO, TARO, ALICE, PIERRE)
    world.write(locale="en", body="Hello")
    world.write(locale="ja", body="こんにちは")
    batch_id = world.tell(HANAKO, TARO, ALICE, PIERRE)
    assert {m["user_id"]: m["body"] for m in world.caught()} == {
        "hanako": "こんにちは",  # her own
        "taro": "こんにちは",  # ja-JP: the language without its region
        "alice": "Hello",  # en-GB likewise
        "pierre": "Hello",  # no French: the default
    }
    assert {n["user_id"]: n["template_locale"] for n in world.notifications(batch_id)}["taro"] == "ja"


def test_a_region_of_its_own_goes_before_the_language(world: World) -> None:  # N2.3
    world.meet(ALICE)
    world.write(locale="en", body="color")
    world.write(locale="en-GB", body="colour")
    world.tell(ALICE)
    assert bodies(world.caught()) == ["colour"]


def test_who_named_no_locale_reads_the_default_one(world: World) -> None:  # N2.3
    world.meet(SAKURA)
    world.write("welcome", "in_app", locale="en", body="Hello")
    world.write("welcome", "in_app", locale="ja", body="こんにちは")
    world.tell(SAKURA)
    assert bodies(world.caught()) == ["こんにちは"]


def test_a_new_locale_is_used_at_once_also_by_those_who_fell_back(world: World) -> None:  # N2.2
    world.meet(PIERRE)
    world.write(locale="en", body="Hello")
    world.tell(PIERRE, data={"n": 1})
    world.write(locale="fr", body="Bonjour")
    world.tell(PIERRE, data={"n": 2})
    assert bodies(world.caught()) == ["Hello", "Bonjour"]


def test_the_newest_version_is_used_and_a_rollback_goes_back(world: World) -> None:  # N2.2
    world.meet(HANAKO)
    for number in (1, 2, 3):
        added = world.post("/api/v1/templates/welcome", {"channel": "in_app", "locale": "ja", "body": f"v{number}"})
        assert (added.status, added["version"]) == (201, number)
    world.tell(HANAKO, data={"n": 1})
    back = world.post("/api/v1/templates/welcome/rollback", {"channel": "in_app", "locale": "ja", "version": 1})
    assert back["version"] == 1
    world.tell(HANAKO, data={"n": 2})
    assert bodies(world.caught()) == ["v3", "v1"]
    versions = world.listed("/api/v1/templates/welcome", limit=2)
    assert [(v["version"], v["is_active"], v["created_by"]) for v in versions] == [
        (3, False, "operator"),
        (2, False, "operator"),
        (1, True, "operator"),
    ]


def test_what_was_addressed_keeps_its_version(world: World) -> None:  # N5.1
    world.meet(HANAKO)
    world.write(body="first")
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO)
    world.write(body="second")
    world.advance_seconds(10)
    assert bodies(world.caught()) == ["first"]
    assert world.notification(batch_id)["template_version"] == 1


def test_a_missing_variable_dead_letters_only_that_recipient(world: World) -> None:  # N2.5
    world.meet(HANAKO, TARO)
    world.write(body="Your plan: {{ user.attributes.plan }}")
    batch_id = world.tell(HANAKO, TARO)
    assert world.reasons(batch_id) == {("hanako", "email"): None, ("taro", "email"): "render_error"}
    assert bodies(world.caught()) == ["Your plan: gold"]
    (letter,) = world.letters()
    assert (letter["user_id"], letter["code"], letter["tries"]) == ("taro", "render_error", 0)
    assert world.metric("notification_render_errors_total", channel="email") == 1


def test_a_channel_the_template_lacks_dead_letters_only_that_channel(world: World) -> None:  # N2.5
    world.meet(HANAKO)
    world.write("welcome", "email")
    batch_id = world.tell(HANAKO, channels=["email", "in_app"])
    assert world.reasons(batch_id) == {("hanako", "email"): None, ("hanako", "in_app"): "template_missing"}
    (letter,) = world.letters()
    assert (letter["channel"], letter["code"]) == ("in_app", "template_missing")
    assert world.metric("notification_template_not_found_total", channel="in_app") == 1


def test_a_locale_without_any_fallback_is_a_missing_template(world: World) -> None:  # N2.3, N2.5
    world.meet(PIERRE)
    world.write(locale="ja")
    assert world.reasons(world.tell(PIERRE)) == {("pierre", "email"): "template_missing"}


def test_a_template_without_any_version_is_refused_at_the_door(world: World) -> None:  # N2.5
    world.meet(HANAKO)
    refused = world.ask(HANAKO, template_id="never-written")
    assert (refused.status, refused["code"], refused["field"]) == (422, "unknown_template", "template_id")
    assert world.listed("/api/v1/users/hanako/notifications") == []


def test_channels_left_out_are_all_that_the_template_has(world: World) -> None:  # N4.1
    world.meet(HANAKO)
    world.write("welcome", "email", "push", "in_app")
    batch_id = world.tell(HANAKO)
    assert sorted(n["channel"] for n in world.notifications(batch_id)) == ["email", "in_app", "push"]


def test_data_stand_at_the_top_and_the_person_under_user(world: World) -> None:  # N2.7
    world.meet(HANAKO)
    world.write(
        subject="{{ order_id }}",
        body="{{ user.name }} {{ user.locale }} {{ user.timezone }} {{ user.attributes.plan }} {{ lines[0].sku }}",
        metadata={"data": {"link": "https://example.com/{{ order_id }}"}},
    )
    world.tell(HANAKO, data={"order_id": "A-17", "lines": [{"sku": "rice"}]})
    (message,) = world.caught()
    assert (message["subject"], message["body"]) == ("A-17", "Hanako ja Asia/Tokyo gold rice")
    assert message["metadata"]["data"]["link"] == "https://example.com/A-17"


def test_a_data_key_user_is_refused(world: World) -> None:  # N2.7
    world.meet(HANAKO)
    world.write()
    refused = world.ask(HANAKO, data={"user": {"name": "Mallory"}})
    assert (refused.status, refused["field"]) == (422, "data.user")


def test_html_is_escaped_and_plain_text_is_not(world: World) -> None:  # N2.6
    world.meet(HANAKO)
    world.write(body="{{ name }}", metadata={"html_body": "<p>{{ name }}</p>"})
    world.tell(HANAKO, data={"name": "<b>&"})
    (message,) = world.caught()
    assert message["body"] == "<b>&"
    assert message["metadata"]["html_body"] == "<p>&lt;b&gt;&amp;</p>"


@pytest.mark.parametrize(
    "body",
    ["{{ unclosed", "{% for x in y %}", "{{ x|format('a') }}", "{{ ''.__class__ }}{{ x|nosuchfilter }}", "x" * 65_537],
)
def test_a_template_that_cannot_work_is_refused_when_stored(world: World, body: str) -> None:  # N2.6
    refused = world.call("POST", "/api/v1/templates/bad", {"channel": "email", "locale": "en", "body": body})
    assert refused.status == 422
    assert refused["field"] == "body"
    assert world.call("GET", "/api/v1/templates/bad").status == 404
