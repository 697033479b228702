"""An order and its confirmation in one transaction, with Django: both are there, or neither.

python examples/enqueue_django.py postgresql://postgres@localhost:5432/shop order-17 hanako [--refused]
python examples/enqueue_django.py sqlite:///.noroshi/noroshi.db order-17 hanako [--refused]
"""

import sys
from typing import Any
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.db import connection, models, transaction

from noroshi import enqueue


class PaymentRefusedError(Exception):
    """Whatever goes wrong in the shop after the notification was enqueued."""


def database(url: str) -> dict[str, Any]:
    """An entry of DATABASES."""
    if url.startswith("sqlite:///"):
        # The server moves the log into the file; see docs/how-to/enqueue.md.
        options = {"init_command": "PRAGMA wal_autocheckpoint=0", "transaction_mode": "IMMEDIATE"}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///"), "OPTIONS": options}
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
    }


def define_orders() -> type[models.Model]:
    """In a project this stands in models.py."""

    class Order(models.Model):
        order_id = models.TextField(primary_key=True)
        customer = models.TextField()

        class Meta:
            app_label = "shop"
            db_table = "orders"

    return Order


def place_order(orders: type[models.Model], order_id: str, customer: str, *, is_refused: bool) -> None:
    with transaction.atomic():
        orders.objects.create(order_id=order_id, customer=customer)
        enqueue(
            connection,
            user_ids=[customer],
            template_id="order-placed",
            data={"order": order_id},
            idempotency_key=order_id,
        )
        if is_refused:
            raise PaymentRefusedError(order_id)


def main(url: str, order_id: str, customer: str, *flags: str) -> None:
    settings.configure(DATABASES={"default": database(url)}, USE_TZ=True)
    django.setup()
    orders = define_orders()
    if "orders" not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(orders)
    place_order(orders, order_id, customer, is_refused="--refused" in flags)
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
