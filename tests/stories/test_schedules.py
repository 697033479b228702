"""Schedules, expiry and withdrawal: never early, never after its time, and not once it was called back."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, JIRO, STRANGER, TARO, crowd
from tests.stories.world import World, instant, kinds

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, JIRO)
    world.write("welcome", "email", "push", "in_app")


# scheduled


def test_a_scheduled_message_is_never_early(world: World) -> None:  # N5.5
    when = world.now + HOUR
    answer = world.ask(HANAKO, TARO, channels=["email"], scheduled_at=when.isoformat())
    assert (answer["status"], answer["undecided"], answer["accepted"]) == ("scheduled", 2, 0)
    world.advance_to(when - INSTANT)
    assert world.caught() == []
    world.advance_to(when)
    assert [instant(m["caught_at"]) for m in world.caught()] == [instant(when.isoformat())] * 2


def test_a_scheduled_batch_shows_that_it_waits_and_its_sums_add_up(world: World) -> None:  # N4.3
    answer = world.ask(HANAKO, TARO, STRANGER, channels=["email"], scheduled_at=world.after(HOUR))
    batch = world.get(f"/api/v1/notifications/{answer['batch_id']}")
    assert (batch["status"], batch["items"]) == ("scheduled", [])
    assert instant(batch["scheduled_at"]) == instant(world.after(HOUR))
    sums = world.get(f"/api/v1/notifications/{answer['batch_id']}/status")
    assert (sums["total"], sums["pending"], sums["undecided"]) == (3, 3, 3)
    world.advance(HOUR)
    sums = world.get(f"/api/v1/notifications/{answer['batch_id']}/status")
    assert (sums["total"], sums["delivered"], sums["undecided"]) == (2, 2, 0)
    assert world.get(f"/api/v1/notifications/{answer['batch_id']}")["status"] == "queued"


def test_a_time_in_the_past_means_now(world: World) -> None:  # N4.4
    answer = world.ask(HANAKO, channels=["email"], scheduled_at=world.after(-HOUR))
    world.until_idle()
    assert (answer["status"], len(world.caught())) == ("queued", 1)


def test_a_time_may_have_any_offset(world: World) -> None:
    world.tell(HANAKO, channels=["email"], scheduled_at="2026-03-02T19:00:00+09:00")
    world.advance(HOUR - SECOND)
    assert world.caught() == []
    world.advance(SECOND)
    assert len(world.caught()) == 1


def test_the_wishes_of_that_moment_decide(world: World) -> None:  # N5.1
    batch_id = world.tell(HANAKO, channels=["email"], scheduled_at=world.after(HOUR))
    world.wish(HANAKO, channels={"email": False})
    world.advance(HOUR)
    assert world.reasons(batch_id) == {("hanako", "email"): "channel_off"}


def test_the_newest_template_of_that_moment_is_used(world: World) -> None:  # N5.1
    world.tell(HANAKO, channels=["email"], scheduled_at=world.after(HOUR))
    world.write(body="Newer")
    world.advance(HOUR)
    assert world.caught()[0]["body"] == "Newer"


def test_a_schedule_survives_a_restart_also_one_that_fell_due_meanwhile(world: World) -> None:  # N4.6
    soon = world.tell(HANAKO, channels=["email"], scheduled_at=world.after(MINUTE))
    late = world.tell(TARO, channels=["email"], scheduled_at=world.after(HOUR))
    world.restart(down=10 * MINUTE)
    world.until_idle()
    assert world.status(soon) == "SENT"
    world.advance(50 * MINUTE)
    assert world.status(late) == "SENT"


def test_schedules_come_in_the_order_of_their_times(world: World) -> None:  # N5.5
    for minutes in (30, 10, 20):
        world.tell(HANAKO, channels=["in_app"], data={"n": minutes}, scheduled_at=world.after(minutes * MINUTE))
    began = world.now
    world.advance(HOUR)
    times = [instant(message["caught_at"]) for message in world.caught()]
    assert times == [instant((began + n * MINUTE).isoformat()) for n in (10, 20, 30)]


# expiry


def test_what_expires_before_it_can_be_sent_is_suppressed(world: World) -> None:  # N5.1, N5.4
    pause = world.post("/api/v1/pauses", {"kind": "channel", "name": "email"})
    batch_id = world.tell(HANAKO, channels=["email"], expires_at=world.after(MINUTE))
    world.advance(MINUTE)
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("SUPPRESSED", "expired")
    assert notification["trail"][-1]["sentence"] == "Its time had passed before it could be sent."
    assert world.caught() == []


def test_what_has_expired_before_it_came_is_rejected_as_expired(world: World) -> None:  # N4.1
    answer = world.ask(HANAKO, channels=["email"], expires_at=world.after(-SECOND))
    assert (answer["accepted"], answer["reasons"]) == (0, {"expired": 1})


def test_up_to_its_expiry_it_is_sent(world: World) -> None:
    pause = world.post("/api/v1/pauses", {"kind": "channel", "name": "email"})
    batch_id = world.tell(HANAKO, channels=["email"], expires_at=world.after(MINUTE))
    world.advance(MINUTE - INSTANT)
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    assert world.status(batch_id) == "SENT"


def test_a_one_time_code_is_worth_nothing_after_ten_minutes(world: World) -> None:  # N3.6
    pause = world.post("/api/v1/pauses", {"kind": "everything"})
    batch_id = world.tell(HANAKO, channels=["email"], category="one_time_code", priority="critical")
    world.advance(10 * MINUTE)
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    assert world.reasons(batch_id) == {("hanako", "email"): "expired"}


# withdrawn


def test_cancel_withdraws_what_is_not_yet_sent(world: World) -> None:  # N4.3
    world.misbehave("slow", channel="push", seconds=5)
    pause = world.post("/api/v1/pauses", {"kind": "channel", "name": "email"})
    batch_id = world.tell(HANAKO, channels=["email", "push", "in_app"])
    answer = world.post(f"/api/v1/notifications/{batch_id}/cancel")
    assert answer["cancelled"] == 1
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.advance(MINUTE)
    statuses = {n["channel"]: n["status"] for n in world.notifications(batch_id)}
    assert statuses == {"email": "CANCELLED", "push": "SENT", "in_app": "SENT"}
    sums = world.get(f"/api/v1/notifications/{batch_id}/status")
    assert (sums["cancelled"], sums["delivered"], sums["total"]) == (1, 2, 3)
    assert world.get(f"/api/v1/notifications/{batch_id}")["status"] == "cancelled"


def test_what_waits_for_a_retry_is_withdrawn(world: World) -> None:  # N4.3
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    assert world.post(f"/api/v1/notifications/{batch_id}/cancel")["cancelled"] == 1
    world.advance(HOUR)
    notification = world.notification(batch_id)
    assert (notification["status"], kinds(notification)) == ("CANCELLED", ["queued", "failed", "cancelled"])
    assert world.caught() == []


def test_what_is_being_sent_when_it_is_cancelled_is_not_tried_again(world: World) -> None:  # N4.3
    world.misbehave("hang", channel="email", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    assert world.post(f"/api/v1/notifications/{batch_id}/cancel")["cancelled"] == 0
    world.advance(MINUTE)
    assert (world.status(batch_id), world.caught()) == ("CANCELLED", [])


def test_a_scheduled_batch_is_withdrawn_whole(world: World) -> None:  # N4.3
    guests = crowd(20)
    world.meet(*guests)
    batch_id = world.tell(*guests, channels=["email"], scheduled_at=world.after(HOUR))
    assert world.post(f"/api/v1/notifications/{batch_id}/cancel")["cancelled"] == 20
    world.advance(2 * HOUR)
    sums = world.get(f"/api/v1/notifications/{batch_id}/status")
    assert (sums["cancelled"], sums["total"]) == (20, 20)
    assert world.caught() == []


def test_what_waits_for_the_morning_is_withdrawn(world: World) -> None:  # N4.3
    world.wish(HANAKO, quiet_hours={"enabled": True, "start": "17:00", "end": "20:00"})
    batch_id = world.tell(HANAKO, channels=["email"])
    world.post(f"/api/v1/notifications/{batch_id}/cancel")
    world.advance(3 * HOUR)
    assert (world.status(batch_id), world.caught()) == ("CANCELLED", [])


def test_cancelling_twice_is_no_harm_and_an_unknown_batch_is_404(world: World) -> None:
    batch_id = world.tell(HANAKO, channels=["email"], scheduled_at=world.after(HOUR))
    for _ in range(2):
        assert world.post(f"/api/v1/notifications/{batch_id}/cancel")["cancelled"] == 1
    assert world.call("POST", "/api/v1/notifications/00000000-0000-7000-8000-000000000000/cancel").status == 404
