"""The ground a conformance test stands on: the store's ports, with the words that tests use for them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import TypedDict, Unpack

import msgspec

from noroshi.domain.attachments import Attachment
from noroshi.domain.batches import BatchHead, NewBatch
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Claim, Settled, Settlement, Taken, Verdict
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, TenantId, new_batch_id
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.people import Device, Preferences
from noroshi.domain.priorities import Priority
from noroshi.domain.records import DeadLetter, DeadLetterFilter, NotificationView
from noroshi.domain.templates import TemplateVersion
from noroshi.flow.address.decide import Addresser
from noroshi.ports.batches import Turn
from tests.cast import Person, crowd
from tests.conformance.stores import HandClock, Store

HERE = DEFAULT_TENANT
ELSEWHERE = TenantId(2)
"""Another tenant, who must never be seen from HERE."""

ACCOUNTS = dict.fromkeys(("email", "push", "sms", "in_app", "web_push"), "acme")
EMAIL = Lane("email", "acme", Priority.NORMAL)
PUSH = Lane("push", "acme", Priority.NORMAL)
LEASE = timedelta(seconds=40)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

decide = Addresser(Categories(), ACCOUNTS, "ja").decide


class BatchWords(TypedDict, total=False):
    """What may be said of a batch."""

    channels: Sequence[str]
    tenant: TenantId
    template_id: str
    priority: Priority
    category: str
    content: int
    after: timedelta
    expires_after: timedelta
    repeated: Sequence[str]
    key: str
    fingerprint: bytes
    files: Mapping[str, bytes]


class SettlementWords(TypedDict, total=False):
    """What may be said of a settlement; `after` is how long until the delivery is due again."""

    after: timedelta
    code: str
    message_id: str
    is_tried: bool
    is_gone: bool


class Ground:
    """Short words for long calls; nothing here knows more of the store than its ports."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store = store
        self.clock = clock
        self._numbers = count(1)

    @property
    def now(self) -> Instant:
        return self.clock.now()

    async def meet(self, *people: Person, tenant: TenantId = HERE) -> list[Device]:
        """Registers people with all they have; answers their devices."""
        devices: list[Device] = []
        for person in people:
            await self.store.people.put_user(tenant, person.user)
            for platform, tokens in (("ios", person.devices), ("web", person.browsers)):
                for token in tokens:
                    device = await self.store.devices.register(tenant, person.user_id, platform, token, None)
                    assert device is not None
                    devices.append(device)
        return devices

    async def crowd(self, count: int) -> list[Person]:
        """Registers many people."""
        people = crowd(count)
        await self.meet(*people)
        return people

    async def wish(self, person: Person, preferences: Preferences, tenant: TenantId = HERE) -> None:
        assert await self.store.people.put_preferences(tenant, person.user_id, preferences, None, None)

    async def write(
        self, template_id: str = "welcome", *channels: str, locale: str = "en", tenant: TenantId = HERE
    ) -> list[TemplateVersion]:
        """Adds a version of the template for each channel (left out: e-mail)."""
        return [
            await self.store.templates.add(
                tenant,
                template_id,
                channel=channel,
                locale=locale,
                variant="",
                subject=None,
                title=None,
                body="Hello {{ user.name }}",
                metadata={},
                created_by="test",
            )
            for channel in channels or ("email",)
        ]

    def batch(self, *user_ids: str, **words: Unpack[BatchWords]) -> NewBatch:
        """A batch to be kept, by default on e-mail; each has content of its own unless `content` is given."""
        number = next(self._numbers)
        after, lives, key = words.get("after", timedelta(0)), words.get("expires_after"), words.get("key")
        head = BatchHead(
            tenant=words.get("tenant", HERE),
            batch_id=new_batch_id(self.now // 1000, number),
            template_id=words.get("template_id", "welcome"),
            channels=tuple(words.get("channels", ("email",))),
            priority=words.get("priority", Priority.NORMAL),
            category=words.get("category", "general"),
            content_hash=words.get("content", number),
            created_at=self.now,
            due_at=plus(self.now, after),
            expires_at=None if lives is None else plus(self.now, lives),
            digest_key=None,
            created_by="test-key",
        )
        return NewBatch(
            head=head,
            user_ids=user_ids,
            repeated=words.get("repeated", ()),
            data=msgspec.json.encode({"number": number}),
            idempotency_key=key,
            fingerprint=b"" if key is None else words.get("fingerprint", b"print"),
            is_scheduled=after > timedelta(0),
            attachments=[Attachment(name, "text/plain", len(raw)) for name, raw in words.get("files", {}).items()],
            contents=list(words.get("files", {}).values()),
        )

    async def keep(self, *batches: NewBatch, room: int = 500) -> Turn:
        return await self.store.batches.keep(batches, room, decide)

    async def accept(self, *people: Person, **words: Unpack[BatchWords]) -> BatchId:
        """Keeps a batch for these people and has it decided."""
        batch = self.batch(*(person.user_id for person in people), **words)
        await self.keep(batch)
        return batch.head.batch_id

    async def take(
        self, lane: Lane = EMAIL, limit: int = 100, paused: Sequence[str] = (), lease: timedelta = LEASE
    ) -> Taken:
        return await self.store.queue.take(lane, limit, lease, frozenset(paused))

    async def claim(self, lane: Lane = EMAIL) -> Claim:
        """The only delivery that is due in the lane."""
        (claim,) = (await self.take(lane)).claims
        return claim

    def settlement(
        self,
        claim: Claim,
        verdict: Verdict,
        *,
        after: timedelta = timedelta(0),
        code: str = "",
        message_id: str | None = None,
        is_tried: bool = True,
        is_gone: bool = False,
    ) -> Settlement:
        return Settlement(
            claim.key,
            claim.fence,
            verdict,
            self.now,
            self.now if is_tried else None,
            due_at=plus(self.now, after),
            message_id=message_id,
            code=code,
            error="as told" if code else "",
            is_gone=is_gone,
        )

    async def settle(self, claim: Claim, verdict: Verdict, **words: Unpack[SettlementWords]) -> Settled:
        return await self.store.queue.settle([self.settlement(claim, verdict, **words)])

    async def views(self, batch_id: BatchId, tenant: TenantId = HERE) -> list[NotificationView]:
        return await self.store.history.of_batch(tenant, batch_id, None, 1000)

    async def view(self, batch_id: BatchId, tenant: TenantId = HERE) -> NotificationView:
        (view,) = await self.views(batch_id, tenant)
        return view

    async def letters(self, tenant: TenantId = HERE, **matching: str) -> list[DeadLetter]:
        return await self.store.dead_letters.list_dead_letters(tenant, DeadLetterFilter(**matching), None, 1000)


def kinds(view: NotificationView) -> list[str]:
    """The trail, in the words of the ledger."""
    return [entry.kind for entry in view.trail]
