"""What the customer reads (L13): natural Japanese, nothing empty, never too long for LINE."""

from typing import get_args, get_type_hints

from msgspec.structs import replace
from tests.reservation_cast import FARM, LINE_USER_ID, booking, jst, reservation

from noroshi.domain.japan import pickup_display
from noroshi.domain.notification_jobs import JobKind
from noroshi.domain.reservations import ReservationId
from noroshi.entrypoints.api.reservations import FarmBody, ReservationBody
from noroshi.reservations.context import build_context
from noroshi.reservations.messages import LONGEST_TEXT, MessageBuilder, text_units

BUILDER = MessageBuilder()
BARE_FARM = replace(FARM, pickup_place_name=None, pickup_map_url=None, pickup_detail_memo=None)


def test_the_context_holds_what_the_specification_lists() -> None:
    # L13
    context = build_context(booking())
    assert context.pickup_display == "12月3日（水）19:00〜20:00"
    assert (context.reservation_id, context.farm_id, context.customer_line_user_id) == (237, 1, LINE_USER_ID)
    assert (context.qty_5, context.qty_10, context.qty_25) == (2, 1, 0)
    assert (context.subtotal_5, context.subtotal_10, context.subtotal_25, context.rice_subtotal) == (
        *(5_000, 4_500, 0),
        9_500,
    )
    assert (context.label_5kg, context.label_10kg, context.label_25kg) == ("5kg", "10kg", "25kg")
    assert (context.pickup_place_name, context.pickup_map_url) == (FARM.pickup_place_name, FARM.pickup_map_url)
    assert (context.pickup_detail_memo, context.pickup_code) == (FARM.pickup_detail_memo, "0417")


def test_a_confirmation() -> None:
    # L13
    assert BUILDER.build_confirmation(build_context(booking())) == (
        "ご予約いただき、誠にありがとうございます。\n"
        "お支払いを確認し、ご予約が確定いたしました。\n\n"
        "【受け渡し日時】\n12月3日（水）19:00〜20:00\n\n"
        "【受け渡し場所】\nやまだ農園 直売所\nhttps://maps.example.jp/yamada\n駐車場は建物の裏手にございます。\n\n"
        "【受け渡しコード】\n0417\n※受け渡しの際に、係の者へお伝えください。\n\n"
        "【ご予約内容】\n5kg × 2袋　5,000円\n10kg × 1袋　4,500円\n小計　9,500円\n\n"
        "ご予約番号：237\n\n"
        "当日のお越しを心よりお待ちしております。"
    )


def test_a_reminder() -> None:
    # L13
    text = BUILDER.build_reminder(build_context(booking()))
    assert text.startswith("お米の受け渡し日時が近づいてまいりましたので、ご案内申し上げます。\n\n【受け渡し日時】\n")
    assert "0417" in text
    assert "https://maps.example.jp/yamada" in text


def test_a_cancellation_says_neither_where_nor_the_code() -> None:
    # L13
    text = BUILDER.build_cancel_completed(build_context(booking()))
    assert text.startswith("ご予約のキャンセルを承りました。\n下記のご予約を取り消しました。\n\n")
    assert "12月3日（水）19:00〜20:00" in text
    assert "0417" not in text
    assert "受け渡し場所" not in text


def test_what_is_absent_is_left_out_with_its_heading() -> None:
    # L13
    context = build_context(booking(reservation(qty_5=0, qty_10=0, subtotal_5=0, subtotal_10=0), farm=BARE_FARM))
    for kind in JobKind:
        text = BUILDER.build(kind, context)
        assert "受け渡し場所" not in text
        assert "ご予約内容" not in text
        assert "None" not in text
        assert "\n\n\n" not in text
        assert text == text.strip()


def test_a_place_of_blanks_is_absent_and_a_memo_alone_keeps_the_heading() -> None:
    # L13
    farm = replace(BARE_FARM, pickup_place_name=" ", pickup_detail_memo="倉庫の前です。")
    text = BUILDER.build_confirmation(build_context(booking(farm=farm)))
    assert "【受け渡し場所】\n倉庫の前です。\n\n" in text


def test_only_sizes_that_were_reserved_have_a_line() -> None:
    # L13
    of = reservation(qty_5=0, subtotal_5=0, qty_10=0, subtotal_10=0, qty_25=3, subtotal_25=33_000)
    text = BUILDER.build_confirmation(build_context(booking(of, farm=replace(FARM, label_25kg="コシヒカリ 25kg"))))
    assert "【ご予約内容】\nコシヒカリ 25kg × 3袋　33,000円\n小計　33,000円\n\n" in text


def limits_of(body: type, of: str) -> dict[str, int]:
    """Of each field of a body of the API that has one."""
    found: dict[str, int] = {}
    for field, hint in get_type_hints(body, include_extras=True).items():
        for meta in (meta for kind in (hint, *get_args(hint)) for meta in getattr(kind, "__metadata__", ())):
            if getattr(meta, of, None) is not None:
                found[field] = getattr(meta, of)
    return found


def test_no_message_is_longer_than_line_allows() -> None:
    # L13: the longest texts that the API takes of a farm, in characters that count twice
    texts = {field: limit for field, limit in limits_of(FarmBody, "max_length").items() if field != "name"}
    assert set(texts) == {
        *("pickup_place_name", "pickup_map_url", "pickup_detail_memo", "label_5kg", "label_10kg", "label_25kg")
    }
    farm = replace(FARM, **{field: "🌾" * limit for field, limit in texts.items()})
    numbers = limits_of(ReservationBody, "le")
    of = reservation(
        reservation_id=ReservationId(2**63 - 1),
        pickup_start=jst("2025-12-31 22:30"),
        pickup_end=jst("2026-12-31 23:30"),
        **{f"{name}_{size}": numbers[f"{name}_{size}"] for name in ("qty", "subtotal") for size in (5, 10, 25)},
    )
    for kind in JobKind:
        assert text_units(BUILDER.build(kind, build_context(booking(of, farm=farm)))) <= LONGEST_TEXT


def test_line_counts_an_emoji_twice() -> None:
    assert text_units("米🌾") == 3


def test_a_pickup_over_midnight_names_both_days() -> None:
    # L13
    shown = pickup_display(jst("2025-12-31 23:30"), jst("2026-01-01 00:30"))
    assert shown == "12月31日（水）23:30〜1月1日（木）0:30"


def test_a_morning_in_japan_that_is_the_day_before_in_utc() -> None:
    # L2
    assert pickup_display(jst("2026-03-01 08:05"), jst("2026-03-01 09:00")) == "3月1日（日）8:05〜9:00"
