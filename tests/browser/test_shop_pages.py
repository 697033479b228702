"""The shop's pages in Chromium, at the width of a phone (L4, L11, L12, L14)."""

import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from noroshi.domain.notification_jobs import JobKind
from tests.browser.shop import ServedShop
from tests.stand_ins.line_in_memory import MONTHLY_LIMIT

pytestmark = pytest.mark.xdist_group("shop pages")

PHONE = {"width": 390, "height": 844}
FLAGS = ["--no-sandbox"] if os.geteuid() == 0 else []
SHOTS = os.environ.get("NOROSHI_TEST_SHOTS")
"""A folder for pictures of every page, for whoever wants to look."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = os.environ.get("NOROSHI_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("service missing: chromium: none on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedShop]:
    with ServedShop(tmp_path_factory.mktemp("shop")) as served:
        yield served


@pytest.fixture
def phone(chromium: Browser, shop: ServedShop) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport=PHONE, base_url=shop.url, locale="ja-JP")  # type: ignore[arg-type]
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def page(phone: BrowserContext) -> Iterator[Page]:
    """Nothing may be complained about in the console: above all no break of the content security policy."""
    page, complaints = phone.new_page(), []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert [text for text in complaints if "status of 4" not in text] == []


def log_in(page: Page, shop: ServedShop) -> None:
    page.goto("/shop")
    page.get_by_label("APIキー").fill(shop.key)
    page.get_by_role("button", name="開く").click()
    expect(page.get_by_role("heading", name="予約の一覧")).to_be_visible()


def look(page: Page, name: str) -> None:
    """Nothing is wider than the phone."""
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def card(page: Page, kind: str) -> object:
    return page.locator("section.kind", has=page.get_by_role("heading", name=kind))


def test_an_operator_sees_every_state_and_why(page: Page, shop: ServedShop) -> None:
    # L4: all five states, each DASH and NONE in a sentence
    unpaid = shop.reserve()
    late = shop.reserve(timedelta(hours=30))
    shop.pay(late)
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    failed = shop.reserve()
    shop.pay(failed)
    shop.line.conduct = lambda _to: None
    log_in(page, shop)
    look(page, "list")
    page.goto(f"/shop/reservations/{unpaid}")
    expect(page.locator(".why").first).to_have_text("ご入金が確認できていないため、予約は確定していません。")
    expect(page.locator(".chip.DASH")).to_have_count(3)
    look(page, "unpaid")
    page.goto(f"/shop/reservations/{late}")
    expect(page.get_by_text("48時間を切ってから確定したため")).to_be_visible()
    expect(page.locator(".chip.SENT")).to_have_text("送信済み")
    page.goto(f"/shop/reservations/{failed}")
    expect(page.locator(".chip.FAILED")).to_have_text("送信失敗")
    expect(page.locator(".chip.PENDING")).to_have_text("送信待ち")
    expect(page.locator("pre.error")).to_contain_text("You have reached your monthly limit.")
    page.get_by_text("メッセージを見る").first.click()
    expect(page.locator(".bubble").first).to_contain_text("ご予約いただき、誠にありがとうございます。")
    look(page, "failed")
    shop.forget(late, JobKind.CONFIRMATION)
    page.goto(f"/shop/reservations/{late}")
    expect(page.locator(".chip.NONE")).to_have_text("ジョブなし")
    expect(page.get_by_text("本来あるはずの通知ジョブがありません。確認が必要です。")).to_be_visible()
    look(page, "none")


def test_times_are_shown_as_the_clock_in_japan_shows_them(page: Page, shop: ServedShop) -> None:
    # L2: stored in UTC, shown in JST
    number = shop.reserve()
    shop.pay(number)
    log_in(page, shop)
    page.goto(f"/shop/reservations/{number}")
    expect(page.get_by_text("3月5日（木）18:00〜19:00", exact=True)).to_be_visible()
    expect(page.get_by_text("2026年3月3日（火）18:00")).to_be_visible()


def test_a_failed_notification_is_sent_again_by_its_button(page: Page, shop: ServedShop) -> None:
    # L11
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    number = shop.reserve()
    shop.pay(number)
    shop.line.conduct = lambda _to: None
    taken = len(shop.line.taken)
    log_in(page, shop)
    page.goto(f"/shop/reservations/{number}")
    page.get_by_role("button", name="もう一度送信する").click()
    expect(page.get_by_text("送信しました")).to_be_visible()
    look(page, "resent")
    page.get_by_role("link", name="戻る").click()
    expect(page.locator(".chip.SENT")).to_be_visible()
    expect(page.get_by_role("button", name="もう一度送信する")).to_have_count(0)
    assert len(shop.line.taken) == taken + 1


def test_what_may_not_be_sent_again_has_no_button_and_says_why(page: Page, shop: ServedShop) -> None:
    # L11, S1 13
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    number = shop.reserve()
    shop.pay(number)
    shop.cancel(number)
    shop.line.conduct = lambda _to: None
    log_in(page, shop)
    page.goto(f"/shop/reservations/{number}")
    expect(page.get_by_text("再送できません：キャンセル完了通知の送信は1回限りです。")).to_be_visible()
    expect(page.get_by_text("再送できません：予約はキャンセル済みです。")).to_be_visible()
    expect(page.get_by_role("button", name="もう一度送信する")).to_have_count(0)
    look(page, "final")


def test_a_dry_run_shows_what_is_due_and_sends_nothing_and_then_it_is_sent(page: Page, shop: ServedShop) -> None:
    # L10, L12
    number = shop.reserve()
    shop.pay(number)
    shop.clock.move(timedelta(days=1, minutes=5, seconds=1))
    taken = len(shop.line.taken)
    log_in(page, shop)
    expect(page.get_by_role("alert")).to_contain_text("cron")
    look(page, "late")
    page.get_by_role("button", name="確認する（ドライラン）").click()
    expect(page.get_by_text("これは確認だけです。")).to_be_visible()
    expect(page.locator(".chip.DRY_RUN").first).to_have_text("送信されます")
    look(page, "dry-run")
    assert len(shop.line.taken) == taken
    page.get_by_role("link", name="戻る").click()
    page.get_by_role("button", name="今すぐ送信").click()
    expect(page.locator(".chip.SENT").first).to_have_text("送信しました")
    assert len(shop.line.taken) > taken
    page.get_by_role("link", name="戻る").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_name_with_html_in_it_is_shown_and_not_obeyed(page: Page, shop: ServedShop) -> None:
    number = shop.reserve(customer_id="unlinked")
    log_in(page, shop)
    page.goto(f"/shop/reservations/{number}")
    expect(page.get_by_text("<b>次郎</b> & sons 様")).to_be_visible()
    expect(page.get_by_text("LINE未連携")).to_be_visible()


def test_the_door_opens_for_an_operators_key_only(page: Page, shop: ServedShop) -> None:
    # L12
    page.goto("/shop")
    look(page, "login")
    for key in ("wrong", shop.reader):
        page.get_by_label("APIキー").fill(key)
        page.get_by_role("button", name="開く").click()
        expect(page.get_by_role("alert")).to_contain_text("このキーでは開けません")
    log_in(page, shop)
    page.get_by_role("button", name="ログアウト").click()
    expect(page.get_by_label("APIキー")).to_be_visible()


def test_a_form_from_elsewhere_does_nothing(phone: BrowserContext, page: Page, shop: ServedShop) -> None:
    # CSRF: the cookie alone is not enough
    log_in(page, shop)
    for form in ({"how": "send"}, {"how": "send", "token": "0" * 32}):
        answer = phone.request.post("/shop/send", form=form)
        assert answer.status == 403
        assert "この操作はできません" in answer.text()


def test_the_key_is_not_to_be_read_from_the_cookie(phone: BrowserContext, page: Page, shop: ServedShop) -> None:
    log_in(page, shop)
    (cookie,) = phone.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    assert shop.key not in cookie["value"]
    assert page.evaluate("document.cookie") == ""


# the customer's page


def test_a_customer_sees_the_reservation_and_cancels_it(page: Page, shop: ServedShop) -> None:
    # L12, L14
    number = shop.reserve()
    shop.pay(number)
    page.goto(shop.link(number))
    expect(page.get_by_text("予約確定")).to_be_visible()
    expect(page.get_by_text("0417")).to_be_visible()
    expect(page.get_by_text("やまだ農園 直売所")).to_be_visible()
    expect(page.get_by_role("link", name="地図を開く")).to_have_attribute("href", "https://maps.example.jp/yamada")
    expect(page.get_by_text("9,500円")).to_be_visible()
    look(page, "booked")
    page.get_by_role("link", name="ご予約をキャンセルする").click()
    expect(page.get_by_text("キャンセル後は元に戻せません。")).to_be_visible()
    look(page, "cancel")
    page.get_by_role("button", name="キャンセルする").click()
    expect(page.get_by_text("このご予約はキャンセルされました。")).to_be_visible()
    expect(page.get_by_text("0417")).to_have_count(0)
    look(page, "cancelled")
    assert shop.line.taken[-1].text.startswith("ご予約のキャンセルを承りました。")


def test_the_page_empties_a_quarter_of_an_hour_after_the_end(page: Page, shop: ServedShop) -> None:
    # L14, the table of S3 D
    number = shop.reserve(timedelta(hours=1))
    link = shop.link(number)
    shop.clock.move(timedelta(hours=2))
    page.goto(link)
    expect(page.get_by_role("link", name="ご予約をキャンセルする")).to_be_visible()
    shop.clock.move(timedelta(minutes=15))
    page.reload()
    expect(page.get_by_text("0417")).to_be_visible()
    expect(page.get_by_role("link", name="ご予約をキャンセルする")).to_have_count(0)
    shop.clock.move(timedelta(seconds=1))
    page.reload()
    expect(page.locator("main")).to_have_text(re.compile(r"^\s*現在、予定している受け渡しの予約はありません\s*$"))
    look(page, "gone")


def test_a_link_that_is_wrong_opens_nothing_and_says_no_more(page: Page, shop: ServedShop) -> None:
    # L12
    number, other = shop.reserve(), shop.reserve()
    token = shop.link(number).partition("token=")[2]
    for path in (f"/booked/{number}", f"/booked/{other}?token={token}", f"/booked/{number}?token=1.AAA", "/booked/x"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 404
        expect(page.get_by_text("ページが見つかりません。")).to_be_visible()
    look(page, "not-found")


def test_every_page_forbids_scripts_frames_and_being_remembered(shop: ServedShop) -> None:
    for path in ("/shop", shop.link(shop.reserve()).removeprefix(shop.url), "/booked/1", "/shop/nothing"):
        try:
            answer = urllib.request.urlopen(shop.url + path)  # noqa: S310 - our own server
        except urllib.error.HTTPError as error:
            answer = error
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"], path
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert b"<script" not in answer.read()
