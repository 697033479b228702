"""Noroshi: settings, or the address of a server, in; everything the API can do with notifications, as methods, out."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from types import TracebackType
from typing import Any, Self

import msgspec

from noroshi.client import answers
from noroshi.client.answers import Page
from noroshi.client.calls import Caller, given, place
from noroshi.client.errors import NoroshiError
from noroshi.client.following import follow
from noroshi.client.inbox import InboxCaller
from noroshi.client.transports import AsgiApp, AsgiTransport, Call, Transport
from noroshi.domain.requests import AcceptedAnswer
from noroshi.ports.clock import Clock
from noroshi.settings import Settings, read_settings

_HTTP = "noroshi.client.http:HttpTransport"
_EMBEDDED = "noroshi.entrypoints.embedded:EmbeddedTransport"
"""Imported on first use: who only connects needs no server, and who is inside one needs no HTTP client."""

_TIMEOUT = timedelta(seconds=30)


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


class Noroshi(InboxCaller):
    """`Noroshi(settings)` is a whole Noroshi inside this process, without any server; `Noroshi.connect(url, key)`
    talks to a server. Both are used as `async with`, or started and stopped. Methods raise NoroshiError."""

    def __init__(self, settings: Settings | None = None) -> None:
        """Without settings those of the environment and of noroshi.toml are taken."""
        super().__init__(_load(_EMBEDDED)(settings or read_settings(os.environ)))

    @classmethod
    def connect(cls, url: str, key: str, *, timeout: timedelta = _TIMEOUT) -> Self:
        """A server elsewhere; `timeout` is for each call."""
        return cls._over(_load(_HTTP)(url, key, timeout))

    @classmethod
    def inside(cls, app: AsgiApp, key: str) -> Self:
        """The API as an ASGI application in this process, called with a key as if from outside."""
        return cls._over(AsgiTransport(app, key))

    @classmethod
    def _over(cls, transport: Transport) -> Self:
        made = cls.__new__(cls)
        Caller.__init__(made, transport)
        return made

    async def start(self) -> None:
        await self._transport.open()

    async def stop(self) -> None:
        """Finishes what is under way."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # notifications

    async def send(
        self,
        user_ids: Sequence[str] | str,
        template_id: str,
        data: Mapping[str, Any] | None = None,
        *,
        channels: Sequence[str] | None = None,
        priority: str | None = None,
        category: str | None = None,
        scheduled_at: datetime | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
        attachments: Sequence[Mapping[str, Any]] | None = None,
    ) -> AcceptedAnswer:
        """Kept, once this returns. With an idempotency key a call may be repeated: within a day the same request gives
        the first answer again, and nothing is sent twice. An attachment is a `filename` and a `content` in bytes, and
        maybe a `content_type` and a `content_id`."""
        body = given(
            user_ids=[user_ids] if isinstance(user_ids, str) else list(user_ids),
            template_id=template_id,
            data=data,
            channels=channels,
            priority=priority,
            category=category,
            scheduled_at=scheduled_at,
            expires_at=expires_at,
            idempotency_key=idempotency_key,
            attachments=attachments or None,
        )
        try:
            return await self._post(AcceptedAnswer, place("notifications"), body)
        except NoroshiError as error:
            if error.code != "idempotency_replay" or error.members.get("first") is None:
                raise
            return msgspec.convert(error.members["first"], AcceptedAnswer)

    async def batches(
        self, *, after: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.BatchEntry]:
        """Newest first; `after` is the id of one that was seen: only newer ones."""
        return await self._get(
            Page[answers.BatchEntry], place("notifications"), after=after, limit=limit, cursor=cursor
        )

    async def batch(self, batch_id: str, *, limit: int | None = None, cursor: str | None = None) -> answers.Batch:
        """With a page of its notifications."""
        return await self._get(answers.Batch, place("notifications", batch_id), limit=limit, cursor=cursor)

    async def batch_status(self, batch_id: str) -> answers.BatchStatus:
        return await self._get(answers.BatchStatus, place("notifications", batch_id, "status"))

    def follow(
        self, batch_id: str, within: timedelta = _TIMEOUT, clock: Clock | None = None
    ) -> AsyncIterator[answers.BatchStatus]:
        """How the batch stands, looked at again and again; ends when nothing of it is on its way any more, or when the
        time is over. What is held (quiet hours, limits, a schedule) is not on its way."""
        return follow(lambda: self.batch_status(batch_id), within, clock)

    async def rejections(
        self, batch_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.Rejection]:
        path = place("notifications", batch_id, "rejections")
        return await self._get(Page[answers.Rejection], path, limit=limit, cursor=cursor)

    async def notification(self, batch_id: str, notification_id: str) -> answers.Notification:
        path = place("notifications", batch_id, "notifications", notification_id)
        return await self._get(answers.Notification, path)

    async def cancel(self, batch_id: str) -> answers.Cancelled:
        return await self._post(answers.Cancelled, place("notifications", batch_id, "cancel"))

    # people

    async def users(
        self, *, prefix: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.UserEntry]:
        """In the order of their ids."""
        return await self._get(Page[answers.UserEntry], place("users"), prefix=prefix, limit=limit, cursor=cursor)

    async def user(self, user_id: str) -> answers.User:
        return await self._get(answers.User, place("users", user_id))

    async def put_user(
        self,
        user_id: str,
        *,
        email: str | None = None,
        phone: str | None = None,
        line_user_id: str | None = None,
        name: str | None = None,
        locale: str | None = None,
        timezone: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> answers.User:
        """Registers or replaces the person; what is left out is empty afterwards."""
        body = given(
            email=email,
            phone=phone,
            line_user_id=line_user_id,
            name=name,
            locale=locale,
            timezone=timezone,
            attributes=attributes,
        )
        return await self._put(answers.User, place("users", user_id), body)

    async def remove_user(self, user_id: str) -> None:
        await self._delete(place("users", user_id))

    async def devices(self, user_id: str, *, cursor: str | None = None) -> Page[answers.Device]:
        return await self._get(Page[answers.Device], place("users", user_id, "devices"), cursor=cursor)

    async def register_device(
        self, user_id: str, platform: str, device_token: str, app_version: str | None = None
    ) -> answers.Device:
        """`platform` is ios, android or web; the same token again refreshes the device."""
        body = given(platform=platform, device_token=device_token, app_version=app_version)
        return await self._post(answers.Device, place("users", user_id, "devices"), body)

    async def remove_device(self, user_id: str, token_id: int) -> None:
        await self._delete(place("users", user_id, "devices", token_id))

    async def preferences(self, user_id: str) -> answers.Preferences:
        return await self._get(answers.Preferences, place("users", user_id, "notification-preferences"))

    async def put_preferences(self, user_id: str, wishes: Mapping[str, Any]) -> answers.Preferences:
        """Replaces the wishes: `channels`, `categories`, `quiet_hours`, `category_channels`, `frequency_limit`."""
        return await self._put(answers.Preferences, place("users", user_id, "notification-preferences"), wishes)

    async def rate_limits(self, user_id: str) -> answers.RateLimits:
        """What is left of a person's limits."""
        return await self._get(answers.RateLimits, place("users", user_id, "rate-limits"))

    async def history(
        self, user_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.Notification]:
        """A person's notifications, newest first."""
        path = place("users", user_id, "notifications")
        return await self._get(Page[answers.Notification], path, limit=limit, cursor=cursor)

    # templates

    async def templates(self, *, limit: int | None = None, cursor: str | None = None) -> Page[answers.TemplateEntry]:
        """In the order of their ids."""
        return await self._get(Page[answers.TemplateEntry], place("templates"), limit=limit, cursor=cursor)

    async def template(
        self, template_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.TemplateVersion]:
        """Every version, newest first within channel, locale and variant."""
        return await self._get(
            Page[answers.TemplateVersion], place("templates", template_id), limit=limit, cursor=cursor
        )

    async def add_template(
        self,
        template_id: str,
        channel: str,
        locale: str,
        body: str,
        *,
        subject: str | None = None,
        title: str | None = None,
        variant: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> answers.Version:
        """Adds a version, which is used from now on."""
        fields = given(
            channel=channel,
            locale=locale,
            body=body,
            subject=subject,
            title=title,
            variant=variant,
            metadata=metadata,
        )
        return await self._post(answers.Version, place("templates", template_id), fields)

    async def roll_back_template(
        self, template_id: str, channel: str, locale: str, version: int, *, variant: str = ""
    ) -> answers.Version:
        body = {"channel": channel, "locale": locale, "version": version, "variant": variant}
        return await self._post(answers.Version, place("templates", template_id, "rollback"), body)

    async def preview(self, template_id: str, channel: str, **fields: Any) -> answers.Preview:
        """What a person would get: `locale`, `variant`, `data`, `user_id`; with `body` (and `subject`, `title`,
        `metadata`) of a draft that is not stored."""
        path = place("templates", template_id, "preview")
        return await self._post(answers.Preview, path, given(channel=channel, **fields))

    # what went wrong, and what is stopped

    async def dead_letters(
        self, *, limit: int | None = None, cursor: str | None = None, **matching: str | None
    ) -> Page[answers.DeadLetter]:
        """Newest first, matching `channel`, `code`, `category`, `user_id`, `batch_id`."""
        return await self._get(Page[answers.DeadLetter], place("dead-letters"), limit=limit, cursor=cursor, **matching)

    async def dead_letter(self, dead_letter_id: int) -> answers.DeadLetter:
        return await self._get(answers.DeadLetter, place("dead-letters", dead_letter_id))

    async def replay(self, dead_letter_id: int) -> answers.Replayed:
        return await self._post(answers.Replayed, place("dead-letters", dead_letter_id, "replay"))

    async def replay_all(self, **matching: str | bool | None) -> answers.Replayed:
        """All that match; without any filter `all=True` must be said."""
        return await self._post(answers.Replayed, place("dead-letters", "replay"), given(**matching))

    async def discard(self, dead_letter_id: int) -> None:
        await self._delete(place("dead-letters", dead_letter_id))

    async def discard_all(self, **matching: str | bool | None) -> answers.Discarded:
        """All that match; without any filter `all=True` must be said."""
        return await self._post(answers.Discarded, place("dead-letters", "discard"), given(**matching))

    async def requests(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[answers.Enqueued]:
        """What was enqueued in callers' own transactions, newest first; `state` is waiting, taken or dead."""
        return await self._get(Page[answers.Enqueued], place("requests"), state=state, limit=limit, cursor=cursor)

    async def request(self, request_id: str) -> answers.Enqueued:
        return await self._get(answers.Enqueued, place("requests", request_id))

    async def retry_request(self, request_id: str) -> answers.Enqueued:
        """Takes a dead one in again."""
        return await self._post(answers.Enqueued, place("requests", request_id, "retry"))

    async def pauses(self, *, cursor: str | None = None) -> Page[answers.Pause]:
        return await self._get(Page[answers.Pause], place("pauses"), cursor=cursor)

    async def pause(self, kind: str, name: str | None = None) -> answers.Pause:
        """`kind` is account, channel, category or everything; `name` says which."""
        return await self._post(answers.Pause, place("pauses"), given(kind=kind, name=name))

    async def resume(self, pause_id: int) -> None:
        await self._delete(place("pauses", pause_id))

    async def alerts(self, *, limit: int | None = None, cursor: str | None = None) -> Page[answers.Alert]:
        return await self._get(Page[answers.Alert], place("alerts"), limit=limit, cursor=cursor)

    # the catcher, and the server itself

    async def caught(
        self,
        *,
        channel: str | None = None,
        user_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[answers.Caught]:
        """Newest first; `after` is the number of one that was seen: only newer ones."""
        return await self._get(
            Page[answers.Caught],
            place("caught"),
            channel=channel,
            user_id=user_id,
            after=after,
            limit=limit,
            cursor=cursor,
        )

    async def caught_one(self, caught_id: int) -> answers.Caught:
        return await self._get(answers.Caught, place("caught", caught_id))

    async def caught_attachment(self, caught_id: int, position: int) -> bytes:
        """The content of a file that was attached to it."""
        return await self._carry(Call("GET", place("caught", caught_id, "attachments", position)))

    async def misbehave(self, fault: str, **how: Any) -> None:
        """Makes the catcher fail (development only): `channel`, `count`, `seconds`, `retry_after`."""
        await self._put(dict[str, Any], place("caught", "misbehaviour"), given(fault=fault, **how))

    async def behave(self) -> None:
        """Lets the catcher work again."""
        await self._delete(place("caught", "misbehaviour"))

    async def readiness(self) -> answers.Readiness:
        return await self._get(answers.Readiness, "/readyz")

    async def workload(self) -> answers.Workload:
        """What is unfinished, since when, and which accounts are left alone."""
        return await self._get(answers.Workload, place("workload"))
