"""The first message: from one POST to what the person sees, with the trail that explains it."""

from tests.cast import HANAKO, JIRO, Person
from tests.stories.world import World, kinds


def test_a_message_goes_from_the_post_to_the_person_and_its_trail_explains_it(world: World) -> None:  # N4.1, N5.4
    world.meet(HANAKO)
    world.write(subject="Order {{ order_id }}", body="Dear {{ user.name }}, order {{ order_id }} is on its way.")
    answer = world.ask(HANAKO, channels=["email"], data={"order_id": "A-17"})
    assert (answer.status, answer["status"], answer["accepted"]) == (202, "queued", 1)
    world.until_idle()
    (message,) = world.caught(HANAKO)
    assert (message["channel"], message["address"]) == ("email", "h***@example.com")
    assert message["subject"] == "Order A-17"
    assert message["body"] == "Dear Hanako, order A-17 is on its way."
    notification = world.notification(answer["batch_id"])
    assert notification["notification_id"] == message["notification_id"]
    assert (notification["status"], notification["template_version"]) == ("SENT", 1)
    assert kinds(notification) == ["queued", "sent"]
    assert notification["trail"][1]["detail"]["message_id"].startswith("caught-")


def test_everything_happens_at_once_when_nothing_stands_in_the_way(world: World) -> None:  # N18
    world.meet(HANAKO)
    world.write("welcome", "email", "push", "sms", "in_app")
    began = world.now
    batch_id = world.tell(HANAKO)
    assert {n["status"] for n in world.notifications(batch_id)} == {"SENT"}
    assert world.now == began


def test_a_message_goes_to_every_device(world: World) -> None:  # N1.10
    world.meet(JIRO)
    world.write("welcome", "push")
    batch_id = world.tell(JIRO)
    assert len(world.caught(JIRO, "push")) == 3
    assert world.status(batch_id) == "SENT"
    assert kinds(world.notification(batch_id)) == ["queued", "sent", "sent", "sent"]


def test_web_push_goes_to_browsers_and_push_to_apps(world: World) -> None:  # N1.3
    both = Person("both", "Both", devices=("an-app",), browsers=("a-browser", "another-browser"))
    world.meet(both)
    world.write("welcome", "push", "web_push")
    world.tell(both)
    assert (len(world.caught(both, "push")), len(world.caught(both, "web_push"))) == (1, 2)
