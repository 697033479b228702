"""Composing: the claims of one take go in; their contents come out, asked for once and shared by the take's flights."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from noroshi.domain.deliveries import Claim, Settlement
from noroshi.domain.templates import Content, RenderFailure
from noroshi.flow.dispatch.judge import judge_unsent
from noroshi.flow.dispatch.waiting import within
from noroshi.ports.clock import Clock

Compose = Callable[[Sequence[Claim]], Awaitable[Sequence[Content | RenderFailure]]]
"""The contents of claims, in their order. It never raises for what a template does."""

Result = Content | RenderFailure | Settlement
"""What a claim says, why it says nothing, or what becomes of it because it is no longer to be sent."""


class ComposeError(Exception):
    """Composing broke down, which no template may cause; nothing of the flight was sent. `is_first`: no other flight of
    its take was told before."""

    def __init__(self, text: str, *, is_first: bool) -> None:
        super().__init__(text)
        self.is_first = is_first


class Composition:
    """Composed when the first of its flights asks, and only what is still to be sent."""

    def __init__(self, claims: Sequence[Claim], compose: Compose, clock: Clock, most: timedelta) -> None:
        self._claims = claims
        self._compose = compose
        self._clock = clock
        self._most = most
        self._has_failed = False
        self._results: asyncio.Task[list[Result]] | None = None

    async def results(self, first: int, count: int) -> list[Result]:
        """For `count` claims, from the place `first` on. Raises ComposeError if nothing could be composed."""
        if self._results is None:
            self._results = asyncio.create_task(within(self._clock, self._most, self._ask()))
        try:
            return (await self._results)[first : first + count]
        except Exception as error:
            is_first, self._has_failed = not self._has_failed, True
            raise ComposeError(type(error).__name__, is_first=is_first) from error

    async def _ask(self) -> list[Result]:
        now = self._clock.now()
        unsent = {claim.key: judge_unsent(claim, None, now) for claim in self._claims}
        wanted = [claim for claim in self._claims if unsent[claim.key] is None]
        contents = await self._compose(wanted) if wanted else ()
        composed = {claim.key: content for claim, content in zip(wanted, contents, strict=True)}
        return [unsent[claim.key] or composed[claim.key] for claim in self._claims]
