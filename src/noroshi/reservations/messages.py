"""Messages: the context of a reservation in, the Japanese text that the customer gets out, one method a kind (L13)."""

from collections.abc import Iterator

from noroshi.domain.notification_jobs import JobKind
from noroshi.domain.shop import NotificationContext

LONGEST_TEXT = 5_000
"""LINE's limit of a text, in UTF-16 code units. The limits of a farm's own texts keep every message below it."""


def text_units(text: str) -> int:
    """The length as LINE counts it."""
    return len(text.encode("utf-16-le")) // 2


class MessageBuilder:
    """Sections stand apart by an empty line; one without anything to say is left out, with its heading."""

    def build(self, kind: JobKind, context: NotificationContext) -> str:
        builders = {
            JobKind.CONFIRMATION: self.build_confirmation,
            JobKind.REMINDER: self.build_reminder,
            JobKind.CANCEL_COMPLETED: self.build_cancel_completed,
        }
        return builders[kind](context)

    def build_confirmation(self, context: NotificationContext) -> str:
        return _joined(
            "ご予約いただき、誠にありがとうございます。\nお支払いを確認し、ご予約が確定いたしました。",
            _when(context),
            _where(context),
            _code(context),
            _rice(context),
            _number(context),
            "当日のお越しを心よりお待ちしております。",
        )

    def build_reminder(self, context: NotificationContext) -> str:
        return _joined(
            "お米の受け渡し日時が近づいてまいりましたので、ご案内申し上げます。",
            _when(context),
            _where(context),
            _code(context),
            _rice(context),
            _number(context),
            "お気をつけてお越しくださいませ。",
        )

    def build_cancel_completed(self, context: NotificationContext) -> str:
        return _joined(
            "ご予約のキャンセルを承りました。\n下記のご予約を取り消しました。",
            _when(context),
            _rice(context),
            _number(context),
            "またのご利用を、心よりお待ちしております。",
        )


def _joined(*sections: str) -> str:
    return "\n\n".join(section for section in sections if section)


def _section(heading: str, *lines: str | None) -> str:
    said = [line.strip() for line in lines if line is not None and line.strip()]
    return "\n".join([f"【{heading}】", *said]) if said else ""


def _when(context: NotificationContext) -> str:
    return _section("受け渡し日時", context.pickup_display)


def _where(context: NotificationContext) -> str:
    return _section("受け渡し場所", context.pickup_place_name, context.pickup_map_url, context.pickup_detail_memo)


def _code(context: NotificationContext) -> str:
    return _section("受け渡しコード", f"{context.pickup_code}\n※受け渡しの際に、係の者へお伝えください。")


def _rice(context: NotificationContext) -> str:
    return _section("ご予約内容", *_lines(context))


def _lines(context: NotificationContext) -> Iterator[str]:
    """A line for each size that was reserved, then their sum."""
    sizes = (
        (context.label_5kg, context.qty_5, context.subtotal_5),
        (context.label_10kg, context.qty_10, context.subtotal_10),
        (context.label_25kg, context.qty_25, context.subtotal_25),
    )
    reserved = [(label, count, yen) for label, count, yen in sizes if count]
    for label, count, yen in reserved:
        yield f"{label} × {count}袋　{yen:,}円"
    if reserved:
        yield f"小計　{context.rice_subtotal:,}円"


def _number(context: NotificationContext) -> str:
    return f"ご予約番号：{context.reservation_id}"
