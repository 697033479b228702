"""The compose stage: claims in, contents out, failures counted."""

from collections.abc import Sequence

from noroshi.domain.deliveries import Claim, DeliveryKey, Recipient
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.flow.compose.compose import Composer
from noroshi.machine.rendering.inline import InlineRenderer

GREETING = TemplateVersion(1, "t", "push", "ja", "", 1, None, "Hi", "{{ user.attributes.city }}: {{ word }}", {})


class CountingMeter:
    def __init__(self) -> None:
        self.counts: list[tuple[str, float, dict[str, str]]] = []

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        self.counts.append((name, by, labels))

    def observe(self, name: str, value: float, **labels: str) -> None:
        raise NotImplementedError

    def gauge(self, name: str, value: float, **labels: str) -> None:
        raise NotImplementedError


def claim(number: int, channel: str, city: str | None) -> Claim:
    attributes = {} if city is None else {"city": city}
    return Claim(
        key=DeliveryKey(DEFAULT_TENANT, NotificationId(bytes([number] * 16)), EndpointId(1)),
        lane=Lane(channel, "catcher", Priority.NORMAL),
        fence=1,
        claims=1,
        tries=0,
        category="general",
        wanted_at=Instant(0),
        expires_at=None,
        lease_until=Instant(0),
        recipient=Recipient(f"u{number}", None, None, None, attributes),
        address="",
        data={"word": "hello"},
        template=GREETING,
        is_cancelled=False,
    )


async def compose(claims: Sequence[Claim]) -> tuple[list[Content | RenderFailure], CountingMeter]:
    meter = CountingMeter()
    return await Composer(InlineRenderer(), meter).compose(claims), meter


async def test_each_claim_gets_the_content_of_its_own_person() -> None:  # N2.7
    contents, meter = await compose([claim(1, "push", "Kyoto"), claim(2, "sms", "Nara")])
    assert contents == [Content("Kyoto: hello", title="Hi"), Content("Nara: hello", title="Hi")]
    assert meter.counts == []


async def test_a_render_error_ends_one_claim_and_is_counted_by_channel() -> None:  # N2.5
    contents, meter = await compose([claim(1, "push", None), claim(2, "push", "Nara"), claim(3, "push", None)])
    assert [type(content) for content in contents] == [RenderFailure, Content, RenderFailure]
    assert meter.counts == [("notification_render_errors_total", 2, {"channel": "push"})]


async def test_no_claims_no_contents() -> None:
    contents, meter = await compose([])
    assert (contents, meter.counts) == ([], [])
