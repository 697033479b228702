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

_WHAT_HAPPENED: dict[str, str] = {
    "queued": "It was put into its lane to be sent.",
    "released": "Its wait ended, and it was put into its lane.",
    "sent": "The provider took it.",
    "delivered": "It is in the person's inbox.",
    "opened": "The person has read it.",
    "failed": "The attempt failed; it is tried again.",
    "outcome_unknown": "Nobody knows whether the attempt arrived: the server stopped before the answer.",
    "late_result": "An answer came after its claim was lost; it changed nothing.",
    "dead_lettered": "It was given up.",
    "suppressed": "It was not sent.",
    "deferred": "It waits.",
    "cancelled": "The caller withdrew it.",
    "replayed": "A person had it sent again.",
    "discarded": "A person put it aside for good.",
}


def sentence_of(entry: LedgerEntry) -> str | None:
    """The reason in words if the entry carries one of ours, else what happened; None for what a newer version wrote."""
    reason = entry.detail.get("code")
    if isinstance(reason, str):
        why = (WHY_LATER if entry.kind == "deferred" else WHY_NOT).get(reason)
        if why is not None:
            return why
    return _WHAT_HAPPENED.get(entry.kind)
