"""Templates with a memory: which channels a template has, asked for every request, is remembered for a moment."""

from datetime import timedelta
from typing import Any

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant, plus
from noroshi.domain.templates import TemplateSummary, TemplateVersion
from noroshi.ports.clock import Clock
from noroshi.ports.templates import Templates

_REMEMBERED_FOR = timedelta(seconds=5)
_MOST = 10_000


class KnownTemplates:
    """Implements ports/templates.py over another one; a write through it is seen at once, any other in 5 s."""

    def __init__(self, templates: Templates, clock: Clock) -> None:
        self._templates = templates
        self._clock = clock
        self._channels: dict[tuple[TenantId, str], tuple[tuple[str, ...], Instant]] = {}

    async def channels(self, tenant: TenantId, template_id: str) -> tuple[str, ...]:
        now = self._clock.now()
        known = self._channels.get((tenant, template_id))
        if known is not None and now < known[1]:
            return known[0]
        found = await self._templates.channels(tenant, template_id)
        if found:
            if len(self._channels) >= _MOST:
                self._channels.clear()
            self._channels[tenant, template_id] = (found, plus(now, _REMEMBERED_FOR))
        return found

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
        added = await self._templates.add(
            tenant,
            template_id,
            channel=channel,
            locale=locale,
            variant=variant,
            subject=subject,
            title=title,
            body=body,
            metadata=metadata,
            created_by=created_by,
        )
        self._channels.pop((tenant, template_id), None)
        return added

    async def versions(self, tenant: TenantId, template_id: str) -> list[TemplateVersion]:
        return await self._templates.versions(tenant, template_id)

    async def list_templates(self, tenant: TenantId, after: str | None, limit: int) -> list[TemplateSummary]:
        return await self._templates.list_templates(tenant, after, limit)

    async def rollback(
        self, tenant: TenantId, template_id: str, channel: str, locale: str, variant: str, version: int
    ) -> TemplateVersion | None:
        chosen = await self._templates.rollback(tenant, template_id, channel, locale, variant, version)
        self._channels.pop((tenant, template_id), None)
        return chosen
