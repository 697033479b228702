"""Looking around: what was sent lately, to whom, from which template, and how the next one would look (N11, N2)."""

from datetime import timedelta

from tests.cast import HANAKO, JIRO, SAKURA, TARO
from tests.stories.world import World, kinds

SECOND = timedelta(seconds=1)


def test_batches_are_listed_with_what_became_of_them(world: World) -> None:  # N11.1
    world.meet(HANAKO, SAKURA)
    world.write("welcome", "email")
    sent = world.tell(HANAKO, SAKURA)
    world.advance(SECOND)
    later = world.tell(HANAKO, channels=["email"], scheduled_at=world.after(timedelta(hours=1)), data={"n": 2})
    first, second = world.listed("/api/v1/notifications", limit=1)
    assert (first["batch_id"], first["status"], first["undecided"]) == (later, "scheduled", 1)
    assert (second["batch_id"], second["status"], second["accepted"], second["rejected"]) == (sent, "queued", 1, 1)
    assert second["sums"] == {
        "total": 2, "delivered": 1, "failed": 0, "pending": 0, "suppressed": 1, "cancelled": 0,
    }  # fmt: skip


def test_whoever_polls_asks_only_for_what_is_newer(world: World) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    seen = world.tell(HANAKO, data={"n": 1})
    (message,) = world.caught()
    world.advance(SECOND)
    newer = world.tell(HANAKO, data={"n": 2})
    assert [b["batch_id"] for b in world.listed(f"/api/v1/notifications?after={seen}")] == [newer]
    (caught,) = world.listed(f"/api/v1/caught?after={message['caught_id']}")
    assert caught["caught_id"] > message["caught_id"]
    assert world.listed(f"/api/v1/caught?after={caught['caught_id']}") == []
    refused = world.call("GET", "/api/v1/notifications?after=yesterday")
    assert (refused.status, refused["field"]) == (422, "after")


def test_one_notification_tells_its_whole_trail_in_sentences(world: World) -> None:  # DESIGN 7.4
    world.meet(HANAKO)
    world.write("welcome", "email")
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO)
    world.advance(timedelta(minutes=2))
    listed = world.notification(batch_id)
    found = world.get(f"/api/v1/notifications/{batch_id}/notifications/{listed['notification_id']}")
    assert found.body == listed
    assert kinds(found.body) == ["queued", "failed", "sent"]
    assert all(entry["sentence"] for entry in found["trail"])


def test_a_notification_is_not_found_in_another_batch(world: World) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    first, second = world.tell(HANAKO, data={"n": 1}), world.tell(HANAKO, data={"n": 2})
    strange = world.notification(second)["notification_id"]
    for name in (strange, first, "nonsense"):
        assert world.call("GET", f"/api/v1/notifications/{first}/notifications/{name}").status == 404


def test_people_are_listed_by_id_and_found_by_its_beginning(world: World) -> None:  # N17.2
    world.meet(TARO, HANAKO, JIRO, SAKURA)
    people = world.listed("/api/v1/users", limit=2)
    assert [person["user_id"] for person in people] == ["hanako", "jiro", "sakura", "taro"]
    assert people[0]["reachable_by"] == ["email", "phone", "push"]
    assert not {"email", "phone"} & set(people[0])
    assert [person["user_id"] for person in world.listed("/api/v1/users?prefix=ta")] == ["taro"]


def test_templates_are_listed(world: World) -> None:  # N2.1
    world.write("welcome", "email", "push")
    world.write("welcome", "email", locale="ja")
    world.write("alarm", "sms")
    templates = world.listed("/api/v1/templates", limit=1)
    assert [(t["template_id"], t["channels"], t["locales"]) for t in templates] == [
        ("alarm", ["sms"], ["en"]),
        ("welcome", ["email", "push"], ["en", "ja"]),
    ]


def test_a_preview_shows_what_a_person_would_get_and_sends_nothing(world: World) -> None:  # N2
    world.meet(HANAKO)
    world.write("news", "email", subject="News", body="Hello {{ user.name }}, {{ what }}")
    world.write("news", "email", locale="ja", subject="{{ what }}", body="{{ user.name }}さん")
    path = "/api/v1/templates/news/preview"
    hers = world.post(path, {"channel": "email", "user_id": "hanako", "data": {"what": "snow"}})
    assert (hers["subject"], hers["body"], hers["locale"], hers["version"]) == ("snow", "Hanakoさん", "ja", 1)
    english = world.post(path, {"channel": "email", "user_id": "hanako", "locale": "en-GB", "data": {"what": "snow"}})
    assert (english["body"], english["locale"]) == ("Hello Hanako, snow", "en")
    world.until_idle()
    assert world.caught() == []
    assert world.listed("/api/v1/notifications") == []


def test_a_draft_is_previewed_without_being_stored(world: World) -> None:
    draft = {"channel": "sms", "body": "{{ n }} left", "data": {"n": 3}}
    shown = world.post("/api/v1/templates/not-yet/preview", draft)
    assert (shown["body"], shown["version"]) == ("3 left", None)
    assert world.call("GET", "/api/v1/templates/not-yet").status == 404
    broken = world.call("POST", "/api/v1/templates/not-yet/preview", draft | {"body": "{{ n"})
    assert (broken.status, broken["code"], broken["field"]) == (422, "bad_template", "body")
    orphan = world.call("POST", "/api/v1/templates/not-yet/preview", {"channel": "email", "subject": "No body"})
    assert (orphan.status, orphan["field"]) == (422, "subject")


def test_a_preview_that_cannot_be_given_says_why(world: World) -> None:
    world.write("news", "email", body="{{ a.b.c }}")
    path = "/api/v1/templates/news/preview"
    assert world.call("POST", "/api/v1/templates/no-such/preview", {"channel": "sms"}).status == 404
    for body, field in (({"channel": "sms"}, "channel"), ({"channel": "email", "user_id": "nobody"}, "user_id")):
        refused = world.call("POST", path, body)
        assert (refused.status, refused["code"], refused["field"]) == (422, "bad_field", field)
    failed = world.call("POST", path, {"channel": "email", "data": {}})
    assert (failed.status, failed["code"], failed["field"]) == (422, "bad_template", "data")


def test_alerts_are_listed(world: World) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    world.enqueue(HANAKO, template_id="no-such")
    world.until_idle()
    (alert,) = world.listed("/api/v1/alerts")
    assert (alert["kind"], alert["subject"], alert["count"]) == ("request_dead", "unknown_template", 1)
