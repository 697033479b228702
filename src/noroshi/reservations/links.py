"""Signed links: a reservation in, a token that opens it alone out, and back."""

import hmac
import re
from base64 import urlsafe_b64encode

from noroshi.domain.ids import TenantId
from noroshi.domain.reservations import ReservationId

_PURPOSE = b"reservation link v1"
_BYTES = 18
_SHAPE = re.compile(r"([0-9]{1,9})\.([A-Za-z0-9_-]{24})")


class Links:
    """A token is the tenant and a keyed hash of tenant and reservation: none is made without the server's key."""

    def __init__(self, pepper: bytes, public_url: str) -> None:
        self._key = hmac.digest(pepper, _PURPOSE, "sha256")
        self._public_url = public_url

    @property
    def is_on_https(self) -> bool:
        return self._public_url.startswith("https://")

    def token(self, tenant: TenantId, reservation_id: ReservationId) -> str:
        digest = hmac.digest(self._key, f"{tenant}/{reservation_id}".encode(), "sha256")[:_BYTES]
        return f"{tenant}.{urlsafe_b64encode(digest).decode()}"

    def tenant(self, token: str, reservation_id: ReservationId) -> TenantId | None:
        """Whose reservation the token opens; None: it opens nothing, or another one."""
        found = _SHAPE.fullmatch(token)
        if found is None:
            return None
        tenant = TenantId(int(found[1]))
        return tenant if hmac.compare_digest(self.token(tenant, reservation_id), token) else None

    def url(self, tenant: TenantId, reservation_id: ReservationId) -> str:
        """The customer's page."""
        return f"{self._public_url}/booked/{reservation_id}?token={self.token(tenant, reservation_id)}"
