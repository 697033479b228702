"""The gate: who may pass, for how long a key is believed, and how fast it may call (N4.5, RELIABILITY 5.2)."""

import asyncio
import hmac
from typing import Any

import msgspec
import pytest
from tests.unit.api_stub import NOON, PEPPER, StubClock, StubKeys, stored

from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import ApiKey, KeyScope
from noroshi.domain.requests import Caller
from noroshi.flow.accept import gate as gate_module
from noroshi.flow.accept.gate import Gate

KEY = api_keys.mint(42 << 150)
BEARER = f"Bearer {KEY}"


class Doorstep:
    """A gate with one stored key."""

    def __init__(self, **more: Any) -> None:
        self.clock = StubClock()
        self.keys = StubKeys()
        self.keys.rows[api_keys.key_id(KEY)] = stored(KEY, KeyScope.SEND, **more)
        self.gate = Gate(self.keys, PEPPER, self.clock)

    async def refusal(self, header: str | None = BEARER) -> ProblemError:
        with pytest.raises(ProblemError) as caught:
            await self.gate.authenticate(header)
        return caught.value


async def test_a_live_key_gives_its_caller() -> None:
    caller = await Doorstep().gate.authenticate(BEARER)
    assert (caller.tenant, caller.name, caller.scopes) == (DEFAULT_TENANT, "shop", frozenset({KeyScope.SEND}))


async def test_the_scheme_is_read_in_any_case() -> None:
    assert (await Doorstep().gate.authenticate(f"bearer {KEY}")).name == "shop"


@pytest.mark.parametrize("header", [None, "", "Basic abc", KEY, "Bearer", "Bearer nrs_nope", f"Bearer {KEY[:-1]}x"])
async def test_what_is_no_key_is_refused_without_a_look_up(header: str | None) -> None:
    door = Doorstep()
    refusal = await door.refusal(header)
    assert refusal.kind.status == 401
    assert refusal.headers["WWW-Authenticate"] == "Bearer"
    assert door.keys.look_ups == 0


async def test_an_unknown_id_still_costs_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Doorstep()
    compared: list[bytes] = []
    right = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return right(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    assert (await door.refusal(f"Bearer {api_keys.mint(7 << 150)}")).kind.code == "unauthorized"
    assert len(compared) == 1


async def test_a_key_with_the_id_of_another_is_refused() -> None:
    door = Doorstep()
    forged = next(
        key
        for key in (api_keys.mint((42 << 150) + n) for n in range(1, 100))
        if api_keys.key_id(key) == api_keys.key_id(KEY)
    )
    assert (await door.refusal(f"Bearer {forged}")).kind.code == "unauthorized"
    await door.gate.authenticate(BEARER)
    assert door.gate.caller_if_cached(f"Bearer {forged}") is None


async def test_the_fast_way_opens_once_the_key_was_seen_and_for_five_seconds() -> None:
    door = Doorstep()
    assert door.gate.caller_if_cached(BEARER) is None
    caller = await door.gate.authenticate(BEARER)
    door.clock.elapsed = 4.9
    assert door.gate.caller_if_cached(BEARER) == caller
    assert await door.gate.authenticate(BEARER) == caller
    assert door.keys.look_ups == 1
    door.clock.elapsed = 5.0
    assert door.gate.caller_if_cached(BEARER) is None


@pytest.mark.parametrize("header", [None, "Bearer ", "Basic x", "Bearer nrs_\N{SNOWMAN}"])
async def test_the_fast_way_knows_only_known_keys(header: str | None) -> None:
    assert Doorstep().gate.caller_if_cached(header) is None


async def test_a_revoked_key_is_refused_within_five_seconds() -> None:
    door = Doorstep()
    caller = await door.gate.authenticate(BEARER)
    await door.keys.revoke(caller.tenant, caller.key_id)
    door.clock.elapsed = 5.0
    assert (await door.refusal()).kind.code == "unauthorized"
    assert door.gate.caller_if_cached(BEARER) is None


async def test_an_expired_key_is_refused_even_while_it_is_believed() -> None:
    door = Doorstep(expires_at=Instant(NOON + 2_000_000))
    await door.gate.authenticate(BEARER)
    door.clock.elapsed = 2.0
    assert door.gate.caller_if_cached(BEARER) is None
    assert (await door.refusal()).kind.code == "unauthorized"


async def test_a_limited_key_gets_its_calls_then_429_with_when_to_come_back() -> None:  # N4.5
    door = Doorstep(per_minute=60)
    await door.gate.authenticate(BEARER)
    assert sum(door.gate.caller_if_cached(BEARER) is not None for _ in range(100)) == 59
    refusal = await door.refusal()
    assert refusal.kind.status == 429
    assert refusal.retry_after is not None
    assert refusal.retry_after.total_seconds() == pytest.approx(1)
    assert refusal.headers == {"RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": "60"}
    door.clock.elapsed = 1.0
    assert door.gate.caller_if_cached(BEARER) is not None
    assert door.gate.caller_if_cached(BEARER) is None


async def test_reading_the_key_again_gives_back_nothing_of_the_limit() -> None:
    door = Doorstep(per_minute=6)
    for _ in range(6):
        await door.gate.authenticate(BEARER)
    door.clock.elapsed = 6.0
    assert (await door.refusal()).kind.code == "too_many_requests"
    assert door.keys.look_ups == 2


async def test_two_first_calls_at_once_share_one_limit() -> None:
    door = Doorstep(per_minute=2)
    find = door.keys.find

    async def slow_find(key_id: str) -> ApiKey | None:
        await asyncio.sleep(0)
        return await find(key_id)

    door.keys.find = slow_find  # type: ignore[method-assign]
    both = await asyncio.gather(door.gate.authenticate(BEARER), door.gate.authenticate(BEARER))
    assert all(isinstance(caller, Caller) for caller in both)
    assert (await door.refusal()).kind.code == "too_many_requests"


async def test_the_gate_remembers_a_bounded_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_KEPT_AT_MOST", 3)
    door = Doorstep()
    for number in range(1, 6):
        key = api_keys.mint(number << 160)
        door.keys.rows[api_keys.key_id(key)] = msgspec.structs.replace(stored(key, KeyScope.READ), name=f"n{number}")
        await door.gate.authenticate(f"Bearer {key}")
    remembered = [door.gate.caller_if_cached(f"Bearer {api_keys.mint(n << 160)}") is not None for n in range(1, 6)]
    assert remembered == [False, False, True, True, True]
