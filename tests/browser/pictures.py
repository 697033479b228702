"""`python -m tests.browser.pictures`: every page of the console at two widths, made anew into docs/pictures."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.product import Product
from tests.browser.scene import Scene
from tests.services.browser import FLAGS, find_chromium

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 150_000
"""Bytes."""

_WIDTHS = {1280: 800, 390: 844}
_SETTLES_MS = 700


class Picture(NamedTuple):
    name: str
    path: str
    is_dark: bool = False


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


def take(browser: Browser, product: Product, picture: Picture) -> None:
    for width, height in _WIDTHS.items():
        context = _signed_in(browser, product, picture, width, height)
        page = context.new_page()
        page.goto(picture.path)
        if page.locator("iframe, [data-preview]").count():
            page.frame_locator("iframe").locator("div").first.wait_for()
        page.wait_for_timeout(_SETTLES_MS)
        path = FOLDER / f"{picture.name}-{width}.png"
        page.screenshot(path=path)
        context.close()
        size = path.stat().st_size
        print(f"{path.name}: {size // 1000} kB")
        if size > LARGEST:
            sys.exit(f"{path.name} is over {LARGEST // 1000} kB")


def _signed_in(browser: Browser, product: Product, picture: Picture, width: int, height: int) -> BrowserContext:
    context = browser.new_context(
        base_url=product.url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    if not picture.path.startswith("/console/login"):
        form = {"key": product.key}
        context.request.post("/console/login", form=form, headers={"origin": product.url}, max_redirects=0)
    return context


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=FLAGS)
        with Product(Path(folder) / "data", words=["--dev"]) as product:
            product.start()
            product.scene.play()
            for picture in pictures(product.scene):
                take(browser, product, picture)
        browser.close()


if __name__ == "__main__":
    main()
