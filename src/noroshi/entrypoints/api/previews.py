"""Previews over the API: a template, stored or not yet, and data in; what one person would get out."""

from typing import Any

from msgspec import Struct, field

from noroshi.domain.deliveries import Recipient
from noroshi.domain.people import DEFAULT_LOCALE, User
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import UserIdText
from noroshi.domain.templates import RenderFailure, TemplateChoice, TemplateVersion, choose
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.templates import LineText, SourceText, VariantText, check_draft
from noroshi.entrypoints.api.wire import ChannelText, LocaleText, known_channel
from noroshi.ports.renderer import RenderJob


class PreviewBody(Struct, frozen=True, forbid_unknown_fields=True):
    """With `body` (and the other parts of a template) what is rendered is a draft that is stored nowhere; without it,
    the version that such a person would get. `locale` is the person's own, if left out."""

    channel: ChannelText
    locale: LocaleText | None = None
    variant: VariantText = ""
    data: dict[str, Any] = field(default_factory=dict)
    user_id: UserIdText | None = None
    body: SourceText | None = None
    subject: LineText | None = None
    title: LineText | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class PreviewAnswer(Struct, frozen=True):
    """`locale` and `version` tell which version was used; a draft has none."""

    channel: str
    locale: str
    variant: str
    version: int | None
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]


async def preview_template(desk: Desk, call: Call[NoQuery, PreviewBody]) -> PreviewAnswer:
    """Nothing is stored, and nothing is sent."""
    asked = call.body
    known_channel(asked.channel, "channel")
    person = await _person(desk, call)
    locale = asked.locale or person.locale or DEFAULT_LOCALE
    template = await _stored(desk, call, locale) if asked.body is None else await _draft(desk, call, locale, asked.body)
    recipient = Recipient(person.user_id, person.name, person.locale, person.timezone, person.attributes)
    (rendered,) = await desk.renderer.render([RenderJob(template, asked.data, recipient)])
    if isinstance(rendered, RenderFailure):
        raise ProblemError("bad_template", rendered.error, field="data")
    return PreviewAnswer(
        channel=template.channel,
        locale=template.locale,
        variant=template.variant,
        version=template.version or None,
        subject=rendered.subject,
        title=rendered.title,
        body=rendered.body,
        metadata=rendered.metadata,
    )


async def _person(desk: Desk, call: Call[NoQuery, PreviewBody]) -> User:
    if call.body.user_id is None:
        return User("", locale=call.body.locale)
    person = await desk.people.get_user(call.tenant, call.body.user_id)
    if person is None:
        raise ProblemError("bad_field", "There is no such user.", field="user_id")
    return person


async def _stored(desk: Desk, call: Call[NoQuery, PreviewBody], locale: str) -> TemplateVersion:
    """The newest active version by the rules of sending."""
    for part in ("subject", "title", "metadata"):
        if getattr(call.body, part):
            raise ProblemError("bad_field", "Part of a draft, which also needs a `body`.", field=part)
    versions = await desk.templates.versions(call.tenant, call.template_id)
    if not versions:
        raise missing("template")
    newest: dict[tuple[str, str, str], TemplateVersion] = {}
    for version in versions:
        if version.is_active:
            newest.setdefault((version.channel, version.locale, version.variant), version)
    choices = [TemplateChoice(*place, version.row) for place, version in newest.items()]
    chosen = choose(choices, call.body.channel, locale, call.body.variant)
    if chosen is None:
        raise ProblemError("bad_field", "The template has no text for this channel and locale.", field="channel")
    return newest[chosen.channel, chosen.locale, chosen.variant]


async def _draft(desk: Desk, call: Call[NoQuery, PreviewBody], locale: str, body: str) -> TemplateVersion:
    draft = TemplateVersion(
        row=0,
        template_id=call.template_id,
        channel=call.body.channel,
        locale=locale,
        variant=call.body.variant,
        version=0,
        subject=call.body.subject,
        title=call.body.title,
        body=body,
        metadata=call.body.metadata,
    )
    await check_draft(desk, draft)
    return draft
