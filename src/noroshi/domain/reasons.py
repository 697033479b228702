"""Why a person does not get a notification: the codes of N4.1, the same in API, store and ledger."""

from enum import StrEnum


class Reason(StrEnum):
    UNKNOWN_USER = "unknown_user"
    REPEATED = "repeated"
    CATEGORY_OFF = "category_off"
    CHANNEL_OFF = "channel_off"
    NO_EMAIL = "no_email"
    NO_PHONE = "no_phone"
    NO_DEVICE = "no_device"
    SUPPRESSED = "suppressed"
    DUPLICATE = "duplicate"
    RATE_LIMITED = "rate_limited"
    EXPIRED = "expired"
    TEMPLATE_MISSING = "template_missing"
    RENDER_ERROR = "render_error"


class HoldReason(StrEnum):
    """Why a notification waits as SCHEDULED."""

    QUIET_HOURS = "quiet_hours"
    RATE_LIMITED = "rate_limited"
