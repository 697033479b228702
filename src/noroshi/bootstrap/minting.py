"""A name and scopes in, a new API key and what the store keeps of it out."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import plus
from noroshi.domain.records import ApiKey, KeyScope
from noroshi.machine.secrets import Secrets
from noroshi.ports.clock import Clock
from noroshi.ports.dice import Dice
from noroshi.ports.store import StorePorts

Minting = Callable[[str, Sequence[KeyScope], int | None, timedelta | None], tuple[str, ApiKey]]
"""(name, scopes, calls a minute, life) in; the key to show once, and what the store keeps of it, out."""


async def mint_key(
    store: StorePorts,
    minting: Minting,
    name: str,
    scopes: Sequence[KeyScope],
    per_minute: int | None,
    expires_in: timedelta | None,
) -> str:
    clear, key = minting(name, scopes, per_minute, expires_in)
    await store.keys.add(key)
    return clear


def minting(clock: Clock, dice: Dice, secrets: Secrets) -> Minting:
    def mint(
        name: str, scopes: Sequence[KeyScope], per_minute: int | None, expires_in: timedelta | None
    ) -> tuple[str, ApiKey]:
        clear = api_keys.mint(dice.bits(api_keys.KEY_BITS))
        now = clock.now()
        key = ApiKey(
            key_id=api_keys.key_id(clear),
            tenant=DEFAULT_TENANT,
            name=name,
            scopes=tuple(scopes),
            digest=api_keys.digest(secrets.pepper, clear),
            created_at=now,
            expires_at=None if expires_in is None else plus(now, expires_in),
            per_minute=per_minute,
        )
        return clear, key

    return mint
