"""People: users with their sealed endpoints, and what they wish."""

from typing import Protocol

from noroshi.domain.addressing import Usage
from noroshi.domain.ids import TenantId
from noroshi.domain.people import Preferences, User, UserSummary


class People(Protocol):
    async def put_user(self, tenant: TenantId, user: User) -> User:
        """Creates or replaces a user; their e-mail, phone and LINE user id become endpoints. Preferences stay."""
        ...

    async def get_user(self, tenant: TenantId, user_id: str) -> User | None: ...

    async def list_users(self, tenant: TenantId, prefix: str, after: str | None, limit: int) -> list[UserSummary]:
        """In the order of their ids, those that begin with `prefix`."""
        ...

    async def remove_user(self, tenant: TenantId, user_id: str) -> bool:
        """Erases the user, endpoints, devices, preferences and data key; history keeps ids only."""
        ...

    async def put_preferences(
        self, tenant: TenantId, user_id: str, preferences: Preferences, locale: str | None, timezone: str | None
    ) -> bool:
        """Replaces the wishes; locale and timezone are left alone where None. False: no such user."""
        ...

    async def get_preferences(self, tenant: TenantId, user_id: str) -> tuple[User, Preferences] | None:
        """None: no such user."""
        ...

    async def usage(self, tenant: TenantId, user_id: str) -> dict[str, Usage] | None:
        """Counted notifications per channel; None: no such user."""
        ...
