"""Tickets: a one-time link to the console out; the key of a visit in exchange for it, once.

A ticket is an API key without any scope, so it opens nothing but this. Revoking it is what uses it up: the store says
yes to one of all who try, in whichever process they do."""

from datetime import timedelta

from noroshi.bootstrap.minting import Minting, mint_key
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.flow.accept.gate import Gate
from noroshi.ports.store import StorePorts

TICKET_LIVES = timedelta(minutes=15)
VISIT_LIVES = timedelta(hours=12)

_TICKET = "console ticket"
_VISITOR = "console"


async def write_ticket(store: StorePorts, minting: Minting) -> str:
    return await mint_key(store, minting, _TICKET, (), None, TICKET_LIVES)


async def redeem_ticket(store: StorePorts, gate: Gate, minting: Minting, ticket: str) -> str | None:
    """A key with every scope that ends with the day; None if the ticket was used before, is too old, or none."""
    try:
        holder = await gate.authenticate(f"Bearer {ticket}")
    except ProblemError:
        return None
    is_ticket = holder.name == _TICKET and not holder.scopes
    if not (is_ticket and await store.keys.revoke(holder.tenant, holder.key_id)):
        return None
    return await mint_key(store, minting, _VISITOR, list(KeyScope), None, VISIT_LIVES)
