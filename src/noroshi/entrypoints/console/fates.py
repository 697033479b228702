"""Fates: the sums of a batch in; a pill, the parts of a bar and a few words out."""

from msgspec import Struct

from noroshi.client.answers import Batch, BatchEntry, BatchStatus, Sums
from noroshi.entrypoints.console.words import Pill

_PARTS = (
    ("delivered", "good", "delivered"),
    ("pending", "busy", "under way"),
    ("failed", "bad", "failed"),
    ("suppressed", "quiet", "suppressed"),
    ("cancelled", "quiet", "cancelled"),
)


class Part(Struct, frozen=True):
    """A piece of the bar, from `start`, `width` wide, in hundredths of it."""

    tone: str
    label: str
    count: int
    start: float
    width: float


class Fate(Struct, frozen=True):
    pill: Pill
    parts: list[Part]
    text: str


def fate_of(batch: Batch | BatchEntry, sums: Sums | BatchStatus | None) -> Fate:
    """What has become of a batch so far. Without sums only its recipients are known."""
    counted = sums if sums is not None else _by_recipients(batch)
    counts = [(getattr(counted, name), tone, label) for name, tone, label in _PARTS]
    total = max(sum(count for count, _, _ in counts), 1)
    parts: list[Part] = []
    start = 0.0
    for count, tone, label in counts:
        if count:
            width = 100 * count / total
            word = "scheduled" if label == "under way" and batch.status == "scheduled" else label
            parts.append(Part(tone, word, count, round(start, 2), round(width, 2)))
            start += width
    words = " · ".join(f"{part.count:,} {part.label}" for part in parts)
    pill = _pill(batch, None if sums is None else counted)
    return Fate(pill, parts, words or "nobody to tell")


def _by_recipients(batch: Batch | BatchEntry) -> Sums:
    """Accepted ones are somewhere on their way; where, only the batch's own page counts."""
    pending = batch.accepted + batch.undecided
    return Sums(pending + batch.rejected, 0, 0, pending, batch.rejected, 0)


def _pill(batch: Batch | BatchEntry, sums: Sums | BatchStatus | None) -> Pill:
    if batch.status == "cancelled":
        return Pill("quiet", "minus", "Cancelled")
    if batch.status == "scheduled":
        return Pill("wait", "clock", "Scheduled")
    if batch.undecided:
        return Pill("busy", "dots", "Processing")
    if sums is None:
        return Pill("busy", "people", f"{batch.accepted:,} accepted")
    if sums.pending:
        return Pill("busy", "dots", "Under way")
    if sums.failed:
        return Pill("bad", "cross", "Failed" if sums.failed == sums.total else f"{sums.failed:,} failed")
    if sums.delivered:
        return Pill("good", "check", "Delivered")
    return Pill("quiet", "minus", "Suppressed")
