"""A caller's request in, the answer out: prepared, kept, decided, or the problem that stands in its way."""

import msgspec

from noroshi.domain.batches import Earlier, Progress, Rejection
from noroshi.domain.ids import BatchId, TenantId, new_batch_id, show
from noroshi.domain.problems import ProblemError
from noroshi.domain.reasons import Reason
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest, RejectionText
from noroshi.flow.accept.intake import Intake
from noroshi.flow.accept.prepare import choose_key, prepare
from noroshi.ports.batches import Batches
from noroshi.ports.clock import Clock
from noroshi.ports.dice import Dice
from noroshi.ports.templates import Templates

SHOWN_REJECTIONS = 100
CANCEL_PAGE = 200

_encode_answer = msgspec.json.Encoder().encode
_decode_answer = msgspec.json.Decoder(AcceptedAnswer).decode


class AcceptDesk:
    """Where requests arrive. `served` are the channels that some provider serves."""

    def __init__(
        self,
        intake: Intake,
        batches: Batches,
        templates: Templates,
        clock: Clock,
        dice: Dice,
        served: frozenset[str],
    ) -> None:
        self._intake = intake
        self._batches = batches
        self._templates = templates
        self._clock = clock
        self._dice = dice
        self._served = served

    async def accept(self, caller: Caller, request: NotificationRequest, key_header: str | None) -> AcceptedAnswer:
        """Answers 202's body after the commit; raises ProblemError, and then nothing is stored."""
        key = choose_key(request, key_header)
        channels = await self._templates.channels(caller.tenant, request.template_id)
        now = self._clock.now()
        batch_id = new_batch_id(now // 1000, self._dice.bits(50))
        batch = prepare(caller, request, key, channels, self._served, now, batch_id)
        earlier, progress = await self._intake.keep(batch)
        if earlier is not None:
            raise await self._conflict(caller.tenant, earlier)
        return await self._final(caller.tenant, batch.head.batch_id, progress)

    async def _final(self, tenant: TenantId, batch_id: BatchId, progress: Progress) -> AcceptedAnswer:
        """The answer to the first call and to all that repeat it. One that further decisions would change is kept by
        whoever gives it first: a call that races the first, or comes after a crash, must hear the same."""
        if progress.undecided and not progress.is_scheduled:
            kept = await self._batches.remember_answer(
                tenant, batch_id, lambda so_far: _encode_answer(_answer(batch_id, so_far))
            )
            if kept is not None:
                return _decode_answer(kept)
        return _answer(batch_id, progress)

    async def _conflict(self, tenant: TenantId, earlier: Earlier) -> ProblemError:
        if not earlier.is_same:
            return ProblemError("idempotency_key_reused", "the key belongs to another request", field="idempotency_key")
        first = await self._first_answer(tenant, earlier.batch_id)
        return ProblemError(
            "idempotency_replay",
            "a request with this key was accepted before; nothing was sent again",
            field="idempotency_key",
            extra={"batch_id": show(earlier.batch_id), "first": msgspec.to_builtins(first)},
        )

    async def _first_answer(self, tenant: TenantId, batch_id: BatchId) -> AcceptedAnswer | None:
        view = await self._batches.find(tenant, batch_id)
        if view is None:
            return None
        if view.answer is not None:
            return _decode_answer(view.answer)
        progress = view.progress
        repeated = progress.reasons.get(Reason.REPEATED, 0)
        if progress.is_scheduled:
            # Nothing was decided then: only the repeats were known.
            reasons = {str(Reason.REPEATED): repeated} if repeated else {}
            progress = Progress(progress.total, rejected=repeated, reasons=reasons, is_scheduled=True)
        progress.rejections.extend(await self._first_rejections(tenant, batch_id, progress, repeated))
        return await self._final(tenant, batch_id, progress)

    async def _first_rejections(
        self, tenant: TenantId, batch_id: BatchId, progress: Progress, repeated: int
    ) -> list[Rejection]:
        """In the order of the first answer: those named again, who stand behind all recipients, then the others."""
        found: list[Rejection] = []
        for after in (progress.total - repeated - 1, -1):
            page = await self._batches.rejections(tenant, batch_id, after, SHOWN_REJECTIONS)
            found.extend(rejection for _, rejection in page)
        return found[: min(progress.rejected, SHOWN_REJECTIONS)]

    async def cancel(self, caller: Caller, batch_id: BatchId) -> bool:
        """Withdraws what is not yet sent; False if the caller has no such batch."""
        if not await self._batches.begin_cancel(caller.tenant, batch_id):
            return False
        await self.finish_cancelling()
        return True

    async def finish_cancelling(self) -> None:
        """Also after a crash in the middle of a withdrawal."""
        while await self._batches.cancel_page(CANCEL_PAGE):
            pass


def _answer(batch_id: BatchId, progress: Progress) -> AcceptedAnswer:
    status = "scheduled" if progress.is_scheduled else "processing" if progress.undecided else "queued"
    has_more = progress.rejected > SHOWN_REJECTIONS
    return AcceptedAnswer(
        batch_id=show(batch_id),
        status=status,
        total_recipients=progress.total,
        accepted=progress.accepted,
        rejected=progress.rejected,
        undecided=progress.undecided,
        reasons=progress.reasons,
        rejections=[RejectionText(r.user_id, r.code) for r in progress.rejections[:SHOWN_REJECTIONS]],
        rejections_url=f"/api/v1/notifications/{show(batch_id)}/rejections" if has_more else None,
    )
