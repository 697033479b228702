"""Templates (N2): versions, which one a person gets, and the content that comes out."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct, field

from noroshi.domain.instants import Instant

FALLBACK_LOCALE = "en"


class TemplateChoice(NamedTuple):
    """The newest active version of a template for one (channel, locale, variant); `row` pins it."""

    channel: str
    locale: str
    variant: str
    row: int


class TemplateVersion(Struct, frozen=True):
    """One stored version, never changed after it is written (only `is_active` may be). `variant` is "" where
    there is none; of `metadata` the strings (also inside `data`) are templates too."""

    row: int
    template_id: str
    channel: str
    locale: str
    variant: str
    version: int
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    is_active: bool = True
    created_by: str = ""
    created_at: Instant = Instant(0)


class TemplateSummary(Struct, frozen=True):
    """A template in a list: where and in which languages it has an active version, and its highest version number."""

    template_id: str
    channels: tuple[str, ...]
    locales: tuple[str, ...]
    version: int
    created_at: Instant
    updated_at: Instant


class Content(Struct, frozen=True):
    """A template rendered for one person: what a channel's payload is made of."""

    body: str
    subject: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class RenderFailure(Struct, frozen=True):
    """Why no content came out; `error` names the place in the template, never a value of the data."""

    error: str


def _fallbacks(locale: str, variant: str) -> Iterator[tuple[str, str]]:
    if variant:
        yield locale, variant
    yield locale, ""
    language = locale.replace("_", "-").split("-")[0]
    if language != locale:
        yield language, ""
    yield FALLBACK_LOCALE, ""


def choose(choices: Iterable[TemplateChoice], channel: str, locale: str, variant: str = "") -> TemplateChoice | None:
    """Locale + variant, then locale, then language without region, then `en` (N2.3)."""
    on_channel = {(c.locale, c.variant): c for c in choices if c.channel == channel}
    for wanted in _fallbacks(locale, variant):
        if wanted in on_channel:
            return on_channel[wanted]
    return None
