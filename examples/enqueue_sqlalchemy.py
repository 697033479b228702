"""An order and its confirmation in one transaction, with SQLAlchemy: both are there, or neither.

python examples/enqueue_sqlalchemy.py postgresql+psycopg://localhost/shop order-17 hanako [--refused]
python examples/enqueue_sqlalchemy.py sqlite:///.noroshi/noroshi.db order-17 hanako [--refused]
"""

import sys
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from noroshi import enqueue


class PaymentRefusedError(Exception):
    """Whatever goes wrong in the shop after the notification was enqueued."""


class Model(DeclarativeBase):
    """Of the shop."""


class Order(Model):
    __tablename__ = "orders"

    order_id: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str]


def connect(url: str) -> Engine:
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def leave_the_log_to_the_server(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA wal_autocheckpoint=0")

    return engine


def place_order(session: Session, order_id: str, customer: str, *, is_refused: bool) -> None:
    with session.begin():
        session.add(Order(order_id=order_id, customer=customer))
        enqueue(
            session,
            user_ids=[customer],
            template_id="order-placed",
            data={"order": order_id},
            idempotency_key=order_id,
        )
        if is_refused:
            raise PaymentRefusedError(order_id)


def main(url: str, order_id: str, customer: str, *flags: str) -> None:
    engine = connect(url)
    Model.metadata.create_all(engine)
    with Session(engine) as session:
        place_order(session, order_id, customer, is_refused="--refused" in flags)
    engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])
