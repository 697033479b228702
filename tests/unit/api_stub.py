"""A desk for shape tests: the ports as plain dictionaries, and an ASGI client; real-store stories live elsewhere."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from tests.onlookers import nobody_looks
from tests.unit.shop_stub import StubShop

from noroshi.domain import api_keys
from noroshi.domain.addressing import Usage
from noroshi.domain.attachments import Attachment
from noroshi.domain.batches import BatchHead, BatchSummary, BatchView, Progress, Rejection
from noroshi.domain.categories import Categories
from noroshi.domain.channels import CHANNELS
from noroshi.domain.enqueued import EnqueuedView, RequestState
from noroshi.domain.ids import (
    DEFAULT_TENANT,
    BatchId,
    NotificationId,
    RequestId,
    TenantId,
    new_batch_id,
    new_request_id,
    notification_id,
    show,
)
from noroshi.domain.inbox import InboxEntry, InboxFilter, InboxHead, Marked, News, Owner
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.people import Device, Preferences, User, UserSummary
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import (
    ApiKey,
    CaughtMessage,
    DeadLetter,
    DeadLetterFilter,
    KeyScope,
    LedgerEntry,
    NotificationView,
    Pause,
    PauseKind,
    RaisedAlert,
    StatusCounts,
    Workload,
)
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from noroshi.domain.states import Status
from noroshi.domain.templates import Content, TemplateSummary, TemplateVersion
from noroshi.entrypoints.api.desk import Misbehaviour
from noroshi.flow.accept.gate import Gate
from noroshi.flow.accept.passes import Passes
from noroshi.machine.envelopes import AesEnvelopes
from noroshi.machine.meter import NullMeter

PEPPER = b"pepper"
NOON = Instant(1_700_000_000_000_000)
BATCH = new_batch_id(1_700_000_000_000, 7)
INVOICE = Attachment("invoice.pdf", "application/pdf", 5)
REQUEST = new_request_id(1_700_000_000_000, 7)
KEYS = {scope: api_keys.mint(number << 200 | number) for number, scope in enumerate(KeyScope, 1)}


class StubClock:
    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> Instant:
        return Instant(NOON + int(self.elapsed * 1_000_000))

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, span: timedelta) -> None:
        self.elapsed += span.total_seconds()


class StubKeys:
    def __init__(self) -> None:
        self.rows: dict[str, ApiKey] = {}
        self.look_ups = 0

    async def add(self, key: ApiKey) -> None:
        self.rows[key.key_id] = key

    async def find(self, key_id: str) -> ApiKey | None:
        self.look_ups += 1
        return self.rows.get(key_id)

    async def list_keys(self, tenant: TenantId) -> list[ApiKey]:
        return [key for key in self.rows.values() if key.tenant == tenant]

    async def revoke(self, tenant: TenantId, key_id: str) -> bool:
        self.rows[key_id] = msgspec.structs.replace(self.rows[key_id], revoked_at=NOON)
        return True


def stored(key: str, *scopes: KeyScope, **more: Any) -> ApiKey:
    """The row of a key."""
    return ApiKey(
        key_id=api_keys.key_id(key),
        tenant=DEFAULT_TENANT,
        name="shop",
        scopes=scopes,
        digest=api_keys.digest(PEPPER, key),
        created_at=NOON,
        **more,
    )


class StubPeople:
    def __init__(self) -> None:
        self.users = {"hanako": User("hanako", email="hanako@example.com", created_at=NOON, updated_at=NOON)}
        self.wishes: dict[str, Preferences] = {}
        self.used: dict[str, Usage] = {}

    async def put_user(self, tenant: TenantId, user: User) -> User:
        self.users[user.user_id] = user
        return user

    async def get_user(self, tenant: TenantId, user_id: str) -> User | None:
        return self.users.get(user_id)

    async def list_users(self, tenant: TenantId, prefix: str, after: str | None, limit: int) -> list[UserSummary]:
        wanted = [
            user for user in self.users.values() if user.user_id.startswith(prefix) and user.user_id > (after or "")
        ]
        return [UserSummary(u.user_id, u.name, None, None, ("email",), NOON, NOON) for u in wanted][:limit]

    async def remove_user(self, tenant: TenantId, user_id: str) -> bool:
        return user_id != "hanako" and self.users.pop(user_id, None) is not None

    async def put_preferences(
        self, tenant: TenantId, user_id: str, preferences: Preferences, locale: str | None, timezone: str | None
    ) -> bool:
        self.wishes[user_id] = preferences
        return user_id in self.users

    async def get_preferences(self, tenant: TenantId, user_id: str) -> tuple[User, Preferences] | None:
        user = self.users.get(user_id)
        return None if user is None else (user, self.wishes.get(user_id, Preferences()))

    async def usage(self, tenant: TenantId, user_id: str) -> dict[str, Usage] | None:
        return self.used if user_id in self.users else None


class StubDevices:
    def __init__(self) -> None:
        self.rows: list[Device] = []

    async def register(
        self, tenant: TenantId, user_id: str, platform: str, device_token: str, app_version: str | None
    ) -> Device | None:
        device = Device(len(self.rows) + 1, user_id, platform, device_token, app_version, True, NOON, NOON)
        if user_id != "hanako":
            return None
        self.rows.append(device)
        return device

    async def list_devices(self, tenant: TenantId, user_id: str) -> list[Device] | None:
        return self.rows if user_id == "hanako" else None

    async def remove_device(self, tenant: TenantId, user_id: str, token_id: int) -> bool:
        return any(row.token_id == token_id and row.user_id == user_id for row in self.rows)


class StubTemplates:
    def __init__(self) -> None:
        self.rows: list[TemplateVersion] = []

    async def add(self, tenant: TenantId, template_id: str, *, created_by: str, **parts: Any) -> TemplateVersion:
        number = len(self.rows) + 1
        version = TemplateVersion(
            row=number, template_id=template_id, version=number, created_by=created_by, created_at=NOON, **parts
        )
        self.rows.insert(0, version)
        return version

    async def versions(self, tenant: TenantId, template_id: str) -> list[TemplateVersion]:
        return [row for row in self.rows if row.template_id == template_id]

    async def list_templates(self, tenant: TenantId, after: str | None, limit: int) -> list[TemplateSummary]:
        return [TemplateSummary("welcome", ("email",), ("en",), 1, NOON, NOON)]

    async def channels(self, tenant: TenantId, template_id: str) -> tuple[str, ...]:
        return ("email",)

    async def rollback(
        self, tenant: TenantId, template_id: str, channel: str, locale: str, variant: str, version: int
    ) -> TemplateVersion | None:
        return next((r for r in self.rows if r.template_id == template_id and r.version == version), None)


class StubRenderer:
    complaint: str | None = None

    async def check(self, template: TemplateVersion) -> str | None:
        return self.complaint

    async def render(self, jobs: Sequence[Any]) -> Sequence[Any]:
        return [Content(body=job.template.body, subject=job.template.subject) for job in jobs]


class StubBatches:
    def __init__(self) -> None:
        head = BatchHead(
            tenant=DEFAULT_TENANT,
            batch_id=BATCH,
            template_id="welcome",
            channels=("email", "push"),
            priority=Priority.NORMAL,
            category="general",
            content_hash=1,
            created_at=NOON,
            due_at=NOON,
            expires_at=None,
            digest_key=None,
            created_by="shop",
        )
        self.view = BatchView(head, Progress(total=5, accepted=2, rejected=2), {}, None, None, (INVOICE,))
        self.status_counts = StatusCounts(
            {("email", Status.SENT): 2, ("push", Status.DEAD_LETTERED): 1, ("push", Status.SUPPRESSED): 1},
            undecided_recipients=1,
            channels=("email", "push"),
            is_cancelled=False,
        )

    async def find(self, tenant: TenantId, batch_id: BatchId) -> BatchView | None:
        return self.view if batch_id == BATCH else None

    async def counts(self, tenant: TenantId, batch_id: BatchId) -> StatusCounts | None:
        return self.status_counts if batch_id == BATCH else None

    async def rejections(
        self, tenant: TenantId, batch_id: BatchId, after: int, limit: int
    ) -> list[tuple[int, Rejection]]:
        rows = [(n, Rejection(f"user-{n}", "no_email")) for n in range(5)]
        return [row for row in rows if row[0] > after][:limit]


class StubHistory:
    views = tuple(
        NotificationView(
            notification_id=notification_id(BATCH, n, 0),
            batch_id=BATCH,
            user_id="hanako",
            channel="email",
            status=Status.SUPPRESSED,
            reason="duplicate",
            decided_at=NOON,
            sent_at=None,
            due_at=None,
            retry_count=0,
            error=None,
            trail=(LedgerEntry(NOON, "suppressed", {"code": "duplicate"}),),
        )
        for n in range(5)
    )

    async def of_batch(
        self, tenant: TenantId, batch_id: BatchId, after: NotificationId | None, limit: int
    ) -> list[NotificationView]:
        return [view for view in self.views if after is None or view.notification_id > after][:limit]

    async def of_user(
        self, tenant: TenantId, user_id: str, before: tuple[Instant, NotificationId] | None, limit: int
    ) -> list[NotificationView]:
        newest_first = self.views[::-1]
        return [view for view in newest_first if before is None or view.notification_id < before[1]][:limit]

    async def find(self, tenant: TenantId, wanted: NotificationId) -> NotificationView | None:
        return next((view for view in self.views if view.notification_id == wanted), None)

    async def list_batches(
        self, tenant: TenantId, before: BatchId | None, after: BatchId | None, limit: int
    ) -> list[BatchSummary]:
        kept = StubBatches()
        return [BatchSummary(kept.view.head, kept.view.progress, None, kept.status_counts)]

    async def has_user(self, tenant: TenantId, user_id: str) -> bool:
        return user_id == "hanako"


class StubDeadLetters:
    def __init__(self) -> None:
        one = notification_id(BATCH, 0, 0)
        self.letter = DeadLetter(1, one, 1, "hanako", "email", "high", "general", "REJECTED", "no", 3, NOON)  # type: ignore[arg-type]
        self.left = 450

    async def list_dead_letters(
        self, tenant: TenantId, matching: DeadLetterFilter, before: int | None, limit: int
    ) -> list[DeadLetter]:
        return [self.letter]

    async def get(self, tenant: TenantId, dead_letter_id: int) -> DeadLetter | None:
        return self.letter if dead_letter_id == 1 else None

    async def replay(
        self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int
    ) -> tuple[int, int]:
        if only is not None:
            return {1: (1, 0), 2: (0, 1)}.get(only, (0, 0))
        return await self.discard(tenant, matching, only, by, limit), 3

    async def discard(self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int) -> int:
        if only is not None:
            return int(only == 1)
        taken = min(limit, self.left)
        self.left -= taken
        return taken


class StubPauses:
    async def add(self, tenant: TenantId, kind: PauseKind, name: str | None, by: str) -> Pause:
        return Pause(1, kind, name, NOON, by)

    async def list_pauses(self, tenant: TenantId, after: int, limit: int) -> list[Pause]:
        return [Pause(1, PauseKind.EVERYTHING, None, NOON, "shop")]

    async def remove(self, tenant: TenantId, pause_id: int) -> bool:
        return pause_id == 1

    async def in_force(self) -> list[Pause]:
        return []


class StubRequests:
    def __init__(self) -> None:
        self.view = EnqueuedView(
            REQUEST, RequestState.DEAD, "order-17", None, "unknown_template", "no template x", NOON, "shop"
        )

    async def oldest_waiting(self) -> Instant | None:
        return None

    async def list_requests(
        self, tenant: TenantId, state: RequestState | None, before: RequestId | None, limit: int
    ) -> list[EnqueuedView]:
        return [self.view] if state in (None, self.view.state) else []

    async def find(self, tenant: TenantId, request_id: RequestId) -> EnqueuedView | None:
        return self.view if request_id == REQUEST else None

    async def retry(self, tenant: TenantId, request_id: RequestId) -> bool:
        if request_id != REQUEST or self.view.state is not RequestState.DEAD:
            return False
        self.view = msgspec.structs.replace(self.view, state=RequestState.WAITING, code=None, error=None)
        return True

    async def forget(self, keys_before: Instant, before: Instant, limit: int) -> int:
        return 0


class StubAlerts:
    async def list_alerts(
        self, tenant: TenantId, before: tuple[Instant, str, str] | None, limit: int
    ) -> list[RaisedAlert]:
        return [RaisedAlert("dead_letters", "warning", "email", NOON, NOON, 3)]


class StubCaught:
    async def keep_caught(self, attempts: Sequence[Any]) -> None: ...

    async def list_caught(
        self,
        tenant: TenantId,
        channel: str | None,
        user_id: str | None,
        before: int | None,
        limit: int,
        *,
        after: int = 0,
    ) -> list[CaughtMessage]:
        one = notification_id(BATCH, 0, 0)
        return [CaughtMessage(1, "email", "hanako", one, "h***@example.com", "Hi", None, "Hello", {}, NOON, (INVOICE,))]


class StubAttachments:
    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        return [b"%PDF-"]


class StubInbox:
    """Hanako has one entry, and nobody else an inbox."""

    def __init__(self) -> None:
        self.entry = InboxEntry(1, notification_id(BATCH, 0, 0), "general", '{"body":"Hello"}', NOON)

    async def head(self, owner: Owner) -> InboxHead | None:
        return InboxHead(1, 1, 0) if owner.user_id == "hanako" else None

    async def page(self, owner: Owner, matching: InboxFilter, before: int | None, limit: int) -> list[InboxEntry]:
        return [self.entry]

    async def after(self, owner: Owner, number: int, limit: int) -> list[InboxEntry]:
        return [self.entry] if number == 0 else []

    async def news(self, asked: Sequence[tuple[Owner, int]], limit: int) -> list[News]:
        return []

    async def mark(self, owner: Owner, number: int, *, is_archived: bool) -> Marked | None:
        return Marked(1, NOON, None, InboxHead(1, 0, 1)) if number == 1 else None

    async def read_all(self, owner: Owner, up_to: int, limit: int) -> int:
        return 1

    async def forget_before(self, moment: Instant, limit: int) -> int:
        return 0


class StubTickets:
    def __init__(self) -> None:
        self.spent: set[bytes] = set()

    async def spend(self, tenant: TenantId, ticket: bytes, expires_at: Instant) -> bool:
        is_first = ticket not in self.spent
        self.spent.add(ticket)
        return is_first


class StubDice:
    def __init__(self) -> None:
        self._throws = 0

    def fraction(self) -> float:
        return 0.5

    def bits(self, count: int) -> int:
        self._throws += 1
        return self._throws


class StubDesk:
    def __init__(self) -> None:
        self.clock = StubClock()
        self.keys = StubKeys()
        for scope, key in KEYS.items():
            self.keys.rows[api_keys.key_id(key)] = stored(key, scope)
        self.gate = Gate(self.keys, PEPPER, self.clock)
        self.tickets = StubTickets()
        self.passes = Passes(self.gate, PEPPER, self.tickets, self.clock, StubDice())
        self.inbox = StubInbox()
        self.live = nobody_looks(self.inbox, self.clock, NullMeter())
        self.origins = frozenset({"https://shop.example"})
        self.batches: Any = StubBatches()
        self.people = StubPeople()
        self.devices = StubDevices()
        self.templates: Any = StubTemplates()
        self.history = StubHistory()
        self.dead_letters = StubDeadLetters()
        self.pauses = StubPauses()
        self.requests = StubRequests()
        self.attachments = StubAttachments()
        self.caught = StubCaught()
        self.alerts = StubAlerts()
        self.shop = StubShop()
        self.envelopes = AesEnvelopes({1: bytes(32)})
        self.renderer = StubRenderer()
        self.categories = Categories()
        self.dispatchable_channels = frozenset(CHANNELS)
        self.reporting_channels: frozenset[str] = frozenset()
        self.accepted: list[tuple[Caller, NotificationRequest, str | None]] = []
        self.raises: Exception | None = None
        self.problems: list[str] = []
        self.has_catcher = True
        self.is_dev = True
        self.changes = 0
        self.heard: list[tuple[str, dict[str, str], bytes]] = []

    async def accept(self, caller: Caller, request: NotificationRequest, key: str | None) -> AcceptedAnswer:
        if self.raises is not None:
            raise self.raises
        self.accepted.append((caller, request, key))
        number = len(request.user_ids)
        return AcceptedAnswer(show(BATCH), "queued", number, number, 0, 0, {}, [])

    async def cancel(self, caller: Caller, batch_id: BatchId) -> int | None:
        return 3 if batch_id == BATCH else None

    async def hear(self, account: str, headers: Mapping[str, str], raw: bytes) -> None:
        if "x-line-signature" not in headers:
            raise ProblemError("bad_signature", "The signature is missing.")
        self.heard.append((account, dict(headers), raw))

    async def heed_pauses(self) -> None:
        self.pauses_changed()

    def pauses_changed(self) -> None:
        self.changes += 1

    def announce_replayed(self) -> None:
        self.changes += 1

    def announce_enqueued(self) -> None:
        self.changes += 1

    def inbox_changed(self, owner: Owner, head: InboxHead) -> None:
        self.changes += 1

    def misbehave(self, how: Misbehaviour | None) -> bool:
        return self.has_catcher

    def metrics_text(self) -> bytes:
        return b"noroshi_up 1\n"

    async def workload(self) -> Workload:
        return Workload(7, {Lane("email", "smtp", Priority.NORMAL): NOON}, ("smtp",), {"smtp": NOON})

    async def readiness(self) -> list[str]:
        return self.problems

    def notes(self) -> list[str]:
        return ["The catcher stands in for email."]


class Reply(Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Client:
    """Calls an ASGI application; `parts` are the pieces in which a body arrives."""

    def __init__(self, app: Any, key: str | None = KEYS[KeyScope.ADMIN]) -> None:
        self.app = app
        self.key = key
        self.pieces_read = 0

    async def call(
        self, method: str, target: str, body: object = None, *, parts: list[bytes] | None = None, **headers: str
    ) -> Reply:
        if parts is None:
            parts = [body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)]
        path, _, query = target.partition("?")
        sent = [(name.replace("_", "-").lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        if self.key is not None and "Authorization" not in headers:
            sent.append((b"authorization", b"Bearer " + self.key.encode()))
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": sent,
        }
        pieces = list(parts)
        messages: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            self.pieces_read += 1
            if not pieces:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self.app(scope, receive, send)
        start, *rest = messages
        text = b"".join(message.get("body", b"") for message in rest)
        return Reply(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, text)
