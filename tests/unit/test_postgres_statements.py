"""What no statement of the PostgreSQL store may do."""

import re

from noroshi.storage.postgres.sql import SQL, migrations

PAGE_WITHIN_IN = re.compile(r"IN \(\s*SELECT(?:[^()]|\([^()]*\))*LIMIT")


def test_no_transaction_of_the_store_notifies() -> None:
    # A NOTIFY locks the whole server until its commit: every commit would wait for the one before it.
    texts = [*SQL.values(), *(script for _, _, script in migrations())]
    assert not [text for text in texts if "notify" in text.lower()]


def test_no_page_is_picked_within_in() -> None:
    """A plan may pick it again for every row it is compared with, and all rows are taken instead of a page."""
    assert PAGE_WITHIN_IN.search(
        "DELETE FROM t WHERE a IN (\n  SELECT a FROM t WHERE b IN (SELECT b FROM u) LIMIT $1\n)"
    )
    assert [name for name, text in SQL.items() if PAGE_WITHIN_IN.search(text)] == []
