"""`python -m tests.browser.pictures [console] [shop]`: their pages (left out: of both) at two widths, made anew into
docs/pictures."""

import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from noroshi.domain.line import LineAnswer
from tests.browser.product import Product
from tests.browser.scene import Scene
from tests.browser.shop import ServedShop
from tests.services.browser import FLAGS, find_chromium

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 150_000
"""Bytes."""

_WIDTHS = {1280: 800, 390: 844}
_SETTLES_MS = 700


class Picture(NamedTuple):
    """`is_whole`: also what one has to scroll to."""

    name: str
    path: str
    is_dark: bool = False
    is_whole: bool = False


def pictures(scene: Scene) -> Iterator[Picture]:
    batches = scene.call("GET", "/api/v1/notifications")["items"]
    three = next(batch for batch in batches if batch["total_recipients"] == 3)["batch_id"]
    retried = scene.call("GET", "/api/v1/users/alice/notifications?limit=100")["items"]
    one = next(found for found in retried if found["retry_count"])
    letter = scene.call("GET", "/api/v1/dead-letters")["items"][0]["dead_letter_id"]
    yield Picture("sign-in", "/console/login?next=/console/people")
    yield Picture("activity", "/console")
    yield Picture("activity-dark", "/console", is_dark=True)
    for channel in ("email", "sms", "push", "voice", "in_app"):
        yield Picture(f"catcher-{channel.replace('_', '-')}", f"/console/catcher/{scene.caught(channel)}")
    yield Picture("catcher-email-dark", f"/console/catcher/{scene.caught('email')}", is_dark=True)
    yield Picture("batch", f"/console/batches/{three}")
    yield Picture("notification", f"/console/batches/{one['batch_id']}/{one['notification_id']}")
    yield Picture("people", "/console/people")
    yield Picture("person", "/console/people/hanako")
    yield Picture("person-dark", "/console/people/hanako", is_dark=True)
    yield Picture("templates", "/console/templates")
    yield Picture("template", "/console/templates/welcome?channel=email&locale=ja&user_id=hanako")
    yield Picture("dead-letters", "/console/dead-letters")
    yield Picture("dead-letter", f"/console/dead-letters/{letter}")
    yield Picture("health", "/console/health")


def shop_pictures(shop: ServedShop) -> Iterator[Picture]:
    """Of a day with something of everything."""
    people = {"sato": "佐藤 花子", "tanaka": "田中 太郎", "suzuki": "鈴木 次郎", "ito": "伊藤 美咲"}
    for customer_id, name in people.items():
        shop.meet(customer_id, name)
    cancelled, booked = shop.reserve(customer_id="ito"), shop.reserve(customer_id="sato")
    shop.pay(cancelled)
    shop.cancel(cancelled)
    shop.pay(booked)
    shop.pay(shop.reserve(timedelta(hours=16), customer_id="tanaka"))
    shop.pay(shop.reserve(customer_id="ito"), 9_000)
    shop.line.conduct = lambda _to: LineAnswer(503, '{"message":"Service Unavailable"}')
    failed = shop.reserve(timedelta(days=4), customer_id="suzuki")
    shop.pay(failed)
    yield Picture("shop-list", "/shop")
    yield Picture("shop-reservation", f"/shop/reservations/{failed}", is_whole=True)
    yield Picture("shop-booked", shop.link(booked).removeprefix(shop.url), is_whole=True)


def take(browser: Browser, product: Product | ServedShop, picture: Picture) -> None:
    for width, height in _WIDTHS.items():
        context = _signed_in(browser, product, picture, width, height)
        page = context.new_page()
        page.goto(picture.path)
        if page.locator("iframe, [data-preview]").count():
            page.frame_locator("iframe").locator("div").first.wait_for()
        page.wait_for_timeout(_SETTLES_MS)
        path = FOLDER / f"{picture.name}-{width}.png"
        page.screenshot(path=path, full_page=picture.is_whole)
        context.close()
        size = path.stat().st_size
        print(f"{path.name}: {size // 1000} kB")
        if size > LARGEST:
            sys.exit(f"{path.name} is over {LARGEST // 1000} kB")


def _signed_in(
    browser: Browser, product: Product | ServedShop, picture: Picture, width: int, height: int
) -> BrowserContext:
    context = browser.new_context(
        base_url=product.url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    door = next((door for door in ("/console", "/shop") if picture.path.startswith(door)), None)
    if door is not None and not picture.path.startswith(f"{door}/login"):
        form = {"key": product.key}
        context.request.post(f"{door}/login", form=form, headers={"origin": product.url}, max_redirects=0)
    return context


def take_of_console(browser: Browser, folder: Path) -> None:
    with Product(folder / "data", words=["--dev"]) as product:
        product.start()
        product.scene.play()
        for picture in pictures(product.scene):
            take(browser, product, picture)


def take_of_shop(browser: Browser, folder: Path) -> None:
    (folder / "shop").mkdir()
    with ServedShop(folder / "shop") as shop:
        for picture in shop_pictures(shop):
            take(browser, shop, picture)


_PLACES = {"console": take_of_console, "shop": take_of_shop}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=FLAGS)
        for name in sys.argv[1:] or _PLACES:
            _PLACES[name](browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
