"""Why there is no notification, in words: for the API in English, for the pages in Japanese."""

from noroshi.domain.reservations import ReminderPolicy
from noroshi.domain.shop import Why

_ENGLISH: dict[Why, str] = {
    Why.UNCONFIRMED: "The reservation is not confirmed: no payment has come in for it.",
    Why.TOO_SOON: "It was confirmed less than 48 hours before the pickup: nobody is reminded so shortly before.",
    Why.NOT_AFTER_CONFIRMATION: "The reminder would have been due no later than the confirmation itself.",
    Why.NOT_BEFORE_PICKUP: "The reminder would have been due no earlier than the pickup.",
    Why.CANCELLED: "The reservation was cancelled before the reminder was due.",
    Why.NOT_CANCELLED: "The reservation is not cancelled.",
    Why.MISSING: "By the rules there should be a job, and there is none: somebody has to look into it.",
    Why.NOT_FAILED: "Only what has failed can be sent again.",
    Why.FINAL: "A notice of cancellation is tried once; its failure is final.",
    Why.TOO_MANY_ATTEMPTS: "It was tried five times.",
    Why.RESERVATION_CANCELLED: "The reservation is cancelled.",
}

_JAPANESE: dict[Why, str] = {
    Why.UNCONFIRMED: "ご入金が確認できていないため、予約は確定していません。",
    Why.TOO_SOON: "受け渡しまで48時間を切ってから確定したため、リマインダーは送りません。",
    Why.NOT_AFTER_CONFIRMATION: "リマインダーの予定時刻が予約の確定より後にならないため、送りません。",
    Why.NOT_BEFORE_PICKUP: "リマインダーの予定時刻が受け渡しより前にならないため、送りません。",
    Why.CANCELLED: "リマインダーの予定時刻より前に、予約がキャンセルされました。",
    Why.NOT_CANCELLED: "予約はキャンセルされていません。",
    Why.MISSING: "本来あるはずの通知ジョブがありません。確認が必要です。",
    Why.NOT_FAILED: "再送できるのは、失敗した通知だけです。",
    Why.FINAL: "キャンセル完了通知の送信は1回限りです。失敗は最終状態です。",
    Why.TOO_MANY_ATTEMPTS: "すでに5回試行しています。",
    Why.RESERVATION_CANCELLED: "予約はキャンセル済みです。",
}

POLICIES: dict[ReminderPolicy, str] = {
    ReminderPolicy.FIXED_48H: "受け渡しの48時間前",
    ReminderPolicy.TIME_SLOTS: "受け渡しの時間帯に応じた時刻",
}


def english(why: Why) -> str:
    return _ENGLISH[why]


def japanese(why: Why) -> str:
    return _JAPANESE[why]
