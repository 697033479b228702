"""Rendering: template text and plain data in, content out; untrusted text cannot hurt anyone."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from noroshi.domain.deliveries import Recipient
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion


class RenderJob(Struct, frozen=True):
    """One recipient: `data` stands at the top level of the template, the person under `user`."""

    template: TemplateVersion
    data: dict[str, Any]
    recipient: Recipient


class Renderer(Protocol):
    async def render(self, jobs: Sequence[RenderJob]) -> Sequence[Content | RenderFailure]:
        """In the order of the jobs. Never raises for what a template does: that is a RenderFailure."""
        ...

    async def check(self, template: TemplateVersion) -> str | None:
        """Why the template may not be stored (which field, what is wrong), or None."""
        ...
