"""What no statement of the PostgreSQL store may do."""

from noroshi.storage.postgres.sql import SQL, migrations


def test_no_transaction_of_the_store_notifies() -> None:
    # A NOTIFY locks the whole server until its commit: every commit would wait for the one before it.
    texts = [*SQL.values(), *(script for _, _, script in migrations())]
    assert not [text for text in texts if "notify" in text.lower()]
