"""StoredTemplates: template versions, only ever added; a rollback switches the later ones off."""

from typing import Any

import msgspec

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.templates import TemplateSummary, TemplateVersion
from noroshi.storage.turns import Readings, Row, Turn, Turns

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def read_template(row: Row) -> TemplateVersion:
    """A stored version from its columns."""
    return TemplateVersion(
        row=row[0],
        template_id=row[1],
        channel=row[2],
        locale=row[3],
        variant=row[4],
        version=row[5],
        subject=row[6],
        title=row[7],
        body=row[8],
        metadata=_decode_object(row[9]),
        is_active=bool(row[10]),
        created_by=row[11],
        created_at=Instant(row[12]),
    )


class StoredTemplates:
    """Implements ports/templates.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

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
        async def work(turn: Turn) -> TemplateVersion:
            place = (tenant, template_id, channel, locale, variant)
            row = (await turn.rows("next_template_row", tenant))[0][0]
            version = (await turn.rows("next_template_version", *place))[0][0]
            text = _encode(metadata).decode()
            await turn.run(
                "insert_template",
                *(tenant, row, template_id, channel, locale, variant, version, subject, title, body, text),
                *(created_by, turn.now),
            )
            stored = await turn.one("template_by_row", tenant, row)
            assert stored is not None  # noqa: S101 - inserted one line above
            return read_template(stored)

        return await self._turns.turn("add_template", work)

    async def versions(self, tenant: TenantId, template_id: str) -> list[TemplateVersion]:
        rows = await self._readings.read(lambda reader: reader.rows("template_versions", tenant, template_id))
        return [read_template(row) for row in rows]

    async def list_templates(self, tenant: TenantId, after: str | None, limit: int) -> list[TemplateSummary]:
        rows = await self._readings.read(lambda reader: reader.rows("list_templates", tenant, after or "", limit))
        return [
            TemplateSummary(
                template_id, _sorted(channels), _sorted(locales), version, Instant(created_at), Instant(updated_at)
            )
            for template_id, channels, locales, version, created_at, updated_at in rows
        ]

    async def channels(self, tenant: TenantId, template_id: str) -> tuple[str, ...]:
        rows = await self._readings.read(lambda reader: reader.rows("template_channels", tenant, template_id))
        return tuple(row[0] for row in rows)

    async def rollback(
        self, tenant: TenantId, template_id: str, channel: str, locale: str, variant: str, version: int
    ) -> TemplateVersion | None:
        async def work(turn: Turn) -> TemplateVersion | None:
            place = (tenant, template_id, channel, locale, variant, version)
            row = await turn.one("switch_on_version", *place)
            if row is None:
                return None
            await turn.run("switch_off_later_versions", *place)
            return read_template(row)

        return await self._turns.turn("rollback_template", work)


def _sorted(names: str | None) -> tuple[str, ...]:
    return tuple(sorted(names.split(","))) if names else ()
