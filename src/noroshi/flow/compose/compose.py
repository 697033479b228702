"""Claims in, the content of each (or why there is none) out, in the same order."""

from collections import Counter
from collections.abc import Sequence

from noroshi.domain.deliveries import Claim
from noroshi.domain.templates import Content, RenderFailure
from noroshi.ports.meter import Meter
from noroshi.ports.renderer import Renderer, RenderJob

RENDER_ERRORS = "notification_render_errors_total"


class Composer:
    """The template version was pinned when the delivery was addressed; here it only meets its person."""

    def __init__(self, renderer: Renderer, meter: Meter) -> None:
        self._renderer = renderer
        self._meter = meter

    async def compose(self, claims: Sequence[Claim]) -> list[Content | RenderFailure]:
        jobs = [RenderJob(claim.template, claim.data, claim.recipient) for claim in claims]
        contents = list(await self._renderer.render(jobs))
        self._count_failures(claims, contents)
        return contents

    def _count_failures(self, claims: Sequence[Claim], contents: Sequence[Content | RenderFailure]) -> None:
        failed = Counter(
            claim.lane.channel
            for claim, content in zip(claims, contents, strict=True)
            if isinstance(content, RenderFailure)
        )
        for channel, count in failed.items():
            self._meter.count(RENDER_ERRORS, count, channel=channel)
