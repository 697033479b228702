"""The guard: an address that a user gave in; where to dial for it, or why nobody may, out (RELIABILITY 5.3)."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from msgspec import Struct

PORTS = frozenset({80, 443, 8443})

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port in, addresses out; an OSError if there are none."""

_NO_IPV4 = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's NAT; clouds keep their own services there
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's host
            "169.254.0.0/16",  # link-local; the metadata of every cloud
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
_GLOBAL_IPV6 = ip_network("2000::/3")
_NO_IPV6 = tuple(
    map(
        ip_network,
        (
            "2001::/23",  # protocol assignments, Teredo and ORCHID among them
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether it belongs to the public Internet. Python's own `is_private` and `is_global` both let dangerous ones
    pass; what is not known to be public is refused."""
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        return _is_public_6(found)
    return not any(found in network for network in _NO_IPV4)


def _is_public_6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return False
    inner = address.ipv4_mapped
    if address in _NAT64:  # how an IPv6-only network reaches IPv4
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if inner is not None:
        return is_public(str(inner))
    return address in _GLOBAL_IPV6 and not any(address in network for network in _NO_IPV6)


async def resolve(host: str, port: int) -> list[str]:
    """As the system does."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Foreign(Struct, frozen=True):
    """An address in its parts, as the client that dials it has read it."""

    scheme: str
    host: str
    port: int
    has_user: bool


class ForbiddenError(Exception):
    """Nobody may be made to dial this; the text says why, and quotes no part of the address."""


class Guard:
    """Resolves once: the address that was looked at is the one to dial, so that a name cannot mean another place a
    moment later."""

    def __init__(
        self,
        resolve: Resolve = resolve,
        is_allowed: Callable[[str], bool] = is_public,
        ports: frozenset[int] = PORTS,
        schemes: frozenset[str] = frozenset({"https"}),
    ) -> None:
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._ports = ports
        self._schemes = schemes

    async def place_of(self, foreign: Foreign) -> str:
        """The IP address to dial. Raises ForbiddenError, or the OSError of a name that cannot be resolved."""
        if foreign.scheme not in self._schemes:
            raise ForbiddenError(f"the address must begin with {' or '.join(sorted(self._schemes))}://")
        if foreign.has_user:
            raise ForbiddenError("the address may hold no user and no password")
        if foreign.port not in self._ports:
            raise ForbiddenError(f"the port must be one of {', '.join(map(str, sorted(self._ports)))}")
        found = [foreign.host] if _is_address(foreign.host) else await self._resolve(foreign.host, foreign.port)
        # Of a name with a public and a private address we would not know which one is meant.
        if not found or not all(map(self._is_allowed, found)):
            raise ForbiddenError("the address does not lead to the public Internet")
        return found[0]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
