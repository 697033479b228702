"""Templates: versions that are only ever added, and switched off by a rollback."""

from typing import Any, Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.templates import TemplateSummary, TemplateVersion


class Templates(Protocol):
    async def add(
        self,
        tenant: TenantId,
        template_id: str,
        *,
        channel: str,
        locale: str,
        variant: str,
        subject: str | None,
        title: str | None,
        body: str,
        metadata: dict[str, Any],
        created_by: str,
    ) -> TemplateVersion:
        """Adds the next version of (template, channel, locale, variant)."""
        ...

    async def versions(self, tenant: TenantId, template_id: str) -> list[TemplateVersion]:
        """Every version, newest first within channel, locale and variant; empty if there is none."""
        ...

    async def list_templates(self, tenant: TenantId, after: str | None, limit: int) -> list[TemplateSummary]:
        """In the order of their ids."""
        ...

    async def channels(self, tenant: TenantId, template_id: str) -> tuple[str, ...]:
        """The channels that have an active version, sorted; empty if the template does not exist."""
        ...

    async def rollback(
        self, tenant: TenantId, template_id: str, channel: str, locale: str, variant: str, version: int
    ) -> TemplateVersion | None:
        """Switches off the versions after `version` and switches that one on; None: no such version."""
        ...
