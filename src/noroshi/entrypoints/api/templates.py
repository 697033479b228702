"""Templates over the API: new versions in; lists, every version, and what a rollback left active, out."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import NameText
from noroshi.domain.templates import TemplateSummary, TemplateVersion
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import ChannelText, LocaleText, Moment, known_channel

SourceText = Annotated[str, Meta(max_length=65_536)]
LineText = Annotated[str, Meta(max_length=2_000)]
VariantText = Annotated[str, Meta(max_length=64, description="Empty: no variant.")]

_PARTS = ("subject", "title", "body", "metadata")


class TemplateBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Jinja syntax. `metadata` may hold html_body, text_body, subtitle, image_url and data, templates too."""

    channel: ChannelText
    locale: LocaleText
    body: SourceText
    variant: VariantText = ""
    subject: LineText | None = None
    title: LineText | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class RollbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    channel: ChannelText
    locale: LocaleText
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    variant: VariantText = ""


class VersionAnswer(Struct, frozen=True):
    template_id: str
    version: int
    channel: str
    locale: str
    variant: str


class TemplateItem(Struct, frozen=True):
    """One version as it was stored; the newest active one of its channel, locale and variant is used."""

    template_id: str
    version: int
    channel: str
    locale: str
    variant: str
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    is_active: bool
    created_by: str
    created_at: Moment


class TemplateEntry(Struct, frozen=True):
    """A template in a list: the channels and locales with an active version, and its highest version number."""

    template_id: str
    channels: list[str]
    locales: list[str]
    version: int
    created_at: Moment
    updated_at: Moment


async def add_template(desk: Desk, call: Call[NoQuery, TemplateBody]) -> VersionAnswer:
    body = call.body
    known_channel(body.channel, "channel")
    draft = TemplateVersion(
        row=0,
        template_id=call.template_id,
        channel=body.channel,
        locale=body.locale,
        variant=body.variant,
        version=0,
        subject=body.subject,
        title=body.title,
        body=body.body,
        metadata=body.metadata,
    )
    await check_draft(desk, draft)
    added = await desk.templates.add(
        call.tenant,
        call.template_id,
        channel=body.channel,
        locale=body.locale,
        variant=body.variant,
        subject=body.subject,
        title=body.title,
        body=body.body,
        metadata=body.metadata,
        created_by=call.caller.name,
    )
    return _show_version(added)


async def check_draft(desk: Desk, draft: TemplateVersion) -> None:
    """Raises ProblemError `bad_template` for what must not be stored."""
    complaint = await desk.renderer.check(draft)
    if complaint is not None:
        raise ProblemError("bad_template", complaint, field=_part_named(complaint))


async def list_templates(desk: Desk, call: Call[PageQuery, None]) -> Page[TemplateEntry]:
    after = place_in(call.query.cursor, NameText)
    templates = await desk.templates.list_templates(call.tenant, after, call.query.limit + 1)
    return page_of(templates, call.query, lambda template: template.template_id, _show_entry)


async def list_template_versions(desk: Desk, call: Call[PageQuery, None]) -> Page[TemplateItem]:
    seen = place_in(call.query.cursor, RowNumber)
    versions = await desk.templates.versions(call.tenant, call.template_id)
    if not versions:
        raise missing("template")
    rows = [version.row for version in versions]
    rest = versions[rows.index(seen) + 1 :] if seen in rows else versions
    return page_of(rest, call.query, lambda version: version.row, _show_item)


async def roll_back_template(desk: Desk, call: Call[NoQuery, RollbackBody]) -> VersionAnswer:
    body = call.body
    known_channel(body.channel, "channel")
    version = await desk.templates.rollback(
        call.tenant, call.template_id, body.channel, body.locale, body.variant, body.version
    )
    if version is None:
        raise missing("template version")
    return _show_version(version)


def _part_named(complaint: str) -> str:
    """The renderer begins its complaint with the part it is about: `body: ...`, `metadata.html_body: ...`."""
    part = complaint.split(":", 1)[0].strip()
    return part if part.split(".", 1)[0] in _PARTS and " " not in part else "body"


def _show_version(version: TemplateVersion) -> VersionAnswer:
    return VersionAnswer(version.template_id, version.version, version.channel, version.locale, version.variant)


def _show_entry(template: TemplateSummary) -> TemplateEntry:
    return TemplateEntry(
        template_id=template.template_id,
        channels=list(template.channels),
        locales=list(template.locales),
        version=template.version,
        created_at=iso(template.created_at),
        updated_at=iso(template.updated_at),
    )


def _show_item(version: TemplateVersion) -> TemplateItem:
    return TemplateItem(
        template_id=version.template_id,
        version=version.version,
        channel=version.channel,
        locale=version.locale,
        variant=version.variant,
        subject=version.subject,
        title=version.title,
        body=version.body,
        metadata=version.metadata,
        is_active=version.is_active,
        created_by=version.created_by,
        created_at=iso(version.created_at),
    )
