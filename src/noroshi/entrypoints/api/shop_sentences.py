"""Why there is no notification: the reason in, a sentence for the pages, in Japanese, out."""

from noroshi.domain.reservations import ReminderPolicy
from noroshi.domain.shop import Why

_JAPANESE: dict[Why, str] = {
    Why.UNCONFIRMED: "ご入金が確認できていないため、予約は確定していません。",
    Why.PAID_TOO_LITTLE: "ご入金額が請求額に足りないため、予約は確定していません。",
    Why.PAID_AFTER_CANCELLATION: "キャンセル後のご入金のため、予約は確定していません。返金の要否をご確認ください。",
    Why.TOO_SOON: "受け渡しまで48時間を切ってから確定したため、リマインダーは送りません。",
    Why.NOT_AFTER_CONFIRMATION: "リマインダーの予定時刻が予約の確定より後にならないため、送りません。",
    Why.NOT_BEFORE_PICKUP: "リマインダーの予定時刻が受け渡しより前にならないため、送りません。",
    Why.CANCELLED: "リマインダーを送る前に、予約がキャンセルされました。",
    Why.NOT_CANCELLED: "予約はキャンセルされていません。",
    Why.MISSING: "本来あるはずの通知ジョブがありません。確認が必要です。",
    Why.NOT_FAILED: "再送できるのは、失敗した通知だけです。",
    Why.FINAL: "キャンセル完了通知の送信は1回限りです。別の方法でお客様にご連絡ください。",
    Why.TOO_MANY_ATTEMPTS: "すでに5回試行しています。別の方法でお客様にご連絡ください。",
    Why.RESERVATION_CANCELLED: "予約はキャンセル済みです。",
}

POLICIES: dict[ReminderPolicy, str] = {
    ReminderPolicy.FIXED_48H: "受け渡しの48時間前",
    ReminderPolicy.TIME_SLOTS: "受け渡しの時間帯に応じた時刻",
}


def japanese(why: Why) -> str:
    return _JAPANESE[why]
