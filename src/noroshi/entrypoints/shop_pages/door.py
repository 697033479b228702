"""The door of the pages: a path in, whether it is one of theirs, and the pages, loaded when first asked for, out."""

from importlib import import_module
from typing import cast

from starlette.types import ASGIApp

from noroshi.entrypoints.api.desk import Desk

SHOP = "/shop"
BOOKED = "/booked"


def is_page(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in (SHOP, BOOKED))


def load_pages(desk: Desk) -> ASGIApp:
    return cast(ASGIApp, import_module("noroshi.entrypoints.shop_pages.app").build_pages(desk))
