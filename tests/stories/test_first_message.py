"""The first message: from one POST to what the person sees, with the trail that explains it."""

from datetime import timedelta

from tests.cast import HANAKO
from tests.stories.world import World, bodies, kinds


def test_a_message_goes_from_the_post_to_the_person_and_its_trail_explains_it(world: World) -> None:  # N4.1, N5.4
    world.meet(HANAKO)
    world.write(subject="Order {{ order_id }}", body="Dear {{ user.name }}, order {{ order_id }} is on its way.")
    answer = world.ask(HANAKO, channels=["email"], data={"order_id": "A-17"})
    assert answer.status == 202
    world.until_idle()
    (message,) = world.caught(HANAKO)
    assert message["subject"] == "Order A-17"
    assert message["body"] == "Dear Hanako, order A-17 is on its way."
    notification = world.notification(answer["batch_id"])
    assert kinds(notification) == ["queued", "sent"]
