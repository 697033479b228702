"""One browser for the whole run, one product for each file, one window for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, sync_playwright

from tests.browser.product import Product
from tests.services.browser import FLAGS

PATIENCE_MS = 10_000


@pytest.fixture(scope="module")
def browser(chromium_path: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium_path), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with Product(folder / "data", words=["--dev"]) as served:
        served.start()
        yield served
        served.stop()


@pytest.fixture(scope="module")
def signed_in(browser: Browser, product: Product) -> StorageState:
    """The cookies of an operator who has given the key."""
    context = browser.new_context(base_url=product.url)
    page = context.new_page()
    page.goto("/console/login")
    page.fill("#key", product.key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/console")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def context(browser: Browser, product: Product, signed_in: StorageState) -> Iterator[BrowserContext]:
    context = browser.new_context(
        base_url=product.url, viewport={"width": 1280, "height": 800}, storage_state=signed_in
    )
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
