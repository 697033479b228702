"""Sentences for people: an entry of the trail in, what it means in words out."""

from noroshi.domain.reasons import HoldReason, Reason
from noroshi.domain.records import LedgerEntry

WHY_NOT: dict[str, str] = {
    Reason.UNKNOWN_USER: "No such user was ever registered.",
    Reason.REPEATED: "The user was named before in the same request.",
    Reason.CATEGORY_OFF: "The person has turned this category off.",
    Reason.CHANNEL_OFF: "The person has turned this channel off.",
    Reason.NO_EMAIL: "The person has no e-mail address.",
    Reason.NO_PHONE: "The person has no phone number.",
    Reason.NO_DEVICE: "The person has no active device for this channel.",
    Reason.SUPPRESSED: "The address must not be used any more.",
    Reason.DUPLICATE: "The person got the same content on this channel a moment before.",
    Reason.RATE_LIMITED: "The person had as many on this channel as the limit allows.",
    Reason.EXPIRED: "Its time had passed before it could be sent.",
    Reason.TEMPLATE_MISSING: "The template has no text for this channel.",
    Reason.RENDER_ERROR: "The template could not be filled in for this person.",
}

WHY_LATER: dict[str, str] = {
    HoldReason.QUIET_HOURS: "It waits until the person's quiet hours end.",
    HoldReason.RATE_LIMITED: "It waits until the person's limit on this channel frees.",
}

_HELD = frozenset({"held", "deferred", "scheduled"})


def sentence_of(entry: LedgerEntry) -> str | None:
    """The sentence for the reason that the entry carries, if it carries one of ours."""
    reason = entry.detail.get("reason") or entry.detail.get("code")
    if not isinstance(reason, str):
        return None
    if entry.kind in _HELD and reason in WHY_LATER:
        return WHY_LATER[reason]
    return WHY_NOT.get(reason) or WHY_LATER.get(reason)
