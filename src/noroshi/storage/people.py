"""StoredPeople and StoredDevices: users and their endpoints in, sealed rows out, and back."""

from datetime import timedelta

import msgspec

from noroshi.domain.addressing import Usage
from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant, plus
from noroshi.domain.people import Device, Preferences, User, UserSummary
from noroshi.ports.sealer import Sealer
from noroshi.storage.inbox import forget_inbox
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

EMAIL_ENDPOINT = 1
PHONE_ENDPOINT = 2
LINE_ENDPOINT = 3
FIRST_DEVICE = 10
_LAST_SUFFIX = "\U0010ffff" * 128
"""No id is longer, so none that begins with a prefix comes after prefix + this."""

_encode = msgspec.json.Encoder().encode
_decode_preferences = msgspec.json.Decoder(Preferences).decode


class StoredPeople:
    """Implements ports/people.py."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = sealer

    async def put_user(self, tenant: TenantId, user: User) -> User:
        async def work(turn: Turn) -> User:
            known = await turn.one("get_user", tenant, user.user_id)
            data_key = known[1] if known else self._sealer.new_user_key(tenant, user.user_id)
            await turn.run(
                "put_user",
                *(tenant, user.user_id, data_key, user.name, user.locale, user.timezone, user.is_zone_confirmed),
                *(_encode(user.attributes).decode(), turn.now),
            )
            await self._put_address(turn, tenant, user.user_id, data_key, EMAIL_ENDPOINT, "email", user.email)
            await self._put_address(turn, tenant, user.user_id, data_key, PHONE_ENDPOINT, "phone", user.phone)
            await self._put_address(turn, tenant, user.user_id, data_key, LINE_ENDPOINT, "line", user.line_user_id)
            created_at = Instant(known[8]) if known else turn.now
            return msgspec.structs.replace(user, created_at=created_at, updated_at=turn.now)

        return await self._turns.turn("put_user", work)

    async def _put_address(
        self, turn: Turn, tenant: TenantId, user_id: str, data_key: bytes, number: int, kind: str, clear: str | None
    ) -> None:
        if clear is None:
            await turn.run("remove_endpoint", tenant, user_id, number)
            return
        blind = self._sealer.blind_index(tenant, kind, clear)
        sealed = self._sealer.seal(data_key, tenant, user_id, kind, clear)
        await turn.run("put_endpoint", tenant, user_id, number, kind, blind, sealed, None, None, turn.now, True)

    async def get_user(self, tenant: TenantId, user_id: str) -> User | None:
        async def read(reader: Statements) -> User | None:
            row = await reader.one("get_user", tenant, user_id)
            return None if row is None else await self._read_user(reader, tenant, row)

        return await self._readings.read(read)

    async def list_users(self, tenant: TenantId, prefix: str, after: str | None, limit: int) -> list[UserSummary]:
        first, last = after or prefix, prefix + _LAST_SUFFIX
        rows = await self._readings.read(
            lambda reader: reader.rows("list_users", tenant, first, last, after or "", limit)
        )
        return [
            UserSummary(user_id, name, locale, timezone, _split(kinds), Instant(created_at), Instant(updated_at))
            for user_id, name, locale, timezone, kinds, created_at, updated_at in rows
        ]

    async def _read_user(self, reader: Statements, tenant: TenantId, row: Row) -> User:
        user_id, data_key, name, locale, timezone, is_zone_confirmed, attributes, _, created_at, updated_at = row
        addresses = {
            endpoint[0]: self._sealer.open(data_key, tenant, user_id, endpoint[1], endpoint[2])
            for endpoint in await reader.rows("endpoints_of_user", tenant, user_id)
            if endpoint[0] < FIRST_DEVICE
        }
        return User(
            user_id=user_id,
            email=addresses.get(EMAIL_ENDPOINT),
            phone=addresses.get(PHONE_ENDPOINT),
            line_user_id=addresses.get(LINE_ENDPOINT),
            name=name,
            locale=locale,
            timezone=timezone,
            attributes=msgspec.json.decode(attributes),
            is_zone_confirmed=bool(is_zone_confirmed),
            created_at=Instant(created_at),
            updated_at=Instant(updated_at),
        )

    async def remove_user(self, tenant: TenantId, user_id: str) -> bool:
        async def work(turn: Turn) -> bool:
            await turn.run("remove_user_endpoints", tenant, user_id)
            was_there = await turn.has_changed("remove_user", tenant, user_id)
            await forget_inbox(turn, tenant, user_id)
            return was_there

        return await self._turns.turn("remove_user", work)

    async def put_preferences(
        self, tenant: TenantId, user_id: str, preferences: Preferences, locale: str | None, timezone: str | None
    ) -> bool:
        wishes = _encode(preferences).decode()
        return await self._turns.turn(
            "put_preferences",
            lambda turn: turn.has_changed("put_preferences", tenant, user_id, wishes, locale, timezone, turn.now),
        )

    async def get_preferences(self, tenant: TenantId, user_id: str) -> tuple[User, Preferences] | None:
        async def read(reader: Statements) -> tuple[User, Preferences] | None:
            row = await reader.one("get_user", tenant, user_id)
            if row is None:
                return None
            wishes = Preferences() if row[7] is None else _decode_preferences(row[7])
            return await self._read_user(reader, tenant, row), wishes

        return await self._readings.read(read)

    async def usage(self, tenant: TenantId, user_id: str) -> dict[str, Usage] | None:
        async def read(reader: Statements) -> dict[str, Usage] | None:
            if await reader.one("get_user", tenant, user_id) is None:
                return None
            now = await reader.moment()
            hour_ago, day_ago = plus(now, timedelta(hours=-1)), plus(now, timedelta(hours=-24))
            return {
                channel: Usage(hour, day, Instant(oldest_in_hour or 0), Instant(oldest_in_day or 0))
                for channel, hour, day, oldest_in_hour, oldest_in_day in await reader.rows(
                    "usage_of_user", tenant, user_id, hour_ago, day_ago
                )
            }

        return await self._readings.read(read)


def _split(kinds: str | None) -> tuple[str, ...]:
    return tuple(sorted(set(kinds.split(",")))) if kinds else ()


class StoredDevices:
    """Implements ports/devices.py."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = sealer

    async def register(
        self, tenant: TenantId, user_id: str, platform: str, device_token: str, app_version: str | None
    ) -> Device | None:
        kind = "web_push" if platform == "web" else "push"

        async def work(turn: Turn) -> Device | None:
            user = await turn.one("get_user", tenant, user_id)
            if user is None:
                return None
            blind = self._sealer.blind_index(tenant, kind, device_token)
            known = await turn.rows("endpoints_of_user", tenant, user_id)
            same = next((row for row in known if row[1] == kind and row[8] == blind), None)
            # never a number that was given before: a late "gone" for a removed device must not hit its successor
            number = same[0] if same else turn.next_number()
            sealed = self._sealer.seal(user[1], tenant, user_id, kind, device_token)
            await turn.run(
                "put_endpoint",
                *(tenant, user_id, number, kind, blind, sealed, platform, app_version, turn.now, False),
            )
            created_at = Instant(same[6]) if same else turn.now
            return Device(number, user_id, platform, device_token, app_version, True, created_at, turn.now)

        return await self._turns.turn("register_device", work)

    async def list_devices(self, tenant: TenantId, user_id: str) -> list[Device] | None:
        async def read(reader: Statements) -> list[Device] | None:
            user = await reader.one("get_user", tenant, user_id)
            if user is None:
                return None
            return [
                self._read_device(tenant, user_id, user[1], row)
                for row in await reader.rows("endpoints_of_user", tenant, user_id)
                if row[0] >= FIRST_DEVICE
            ]

        return await self._readings.read(read)

    def _read_device(self, tenant: TenantId, user_id: str, data_key: bytes, row: Row) -> Device:
        number, kind, sealed, is_active, platform, app_version, created_at, last_used_at, _ = row
        token = self._sealer.open(data_key, tenant, user_id, kind, sealed)
        return Device(number, user_id, platform, token, app_version, bool(is_active), created_at, last_used_at)

    async def remove_device(self, tenant: TenantId, user_id: str, token_id: int) -> bool:
        if token_id < FIRST_DEVICE:
            return False
        return await self._turns.turn(
            "remove_device", lambda turn: turn.has_changed("remove_endpoint", tenant, user_id, token_id)
        )
