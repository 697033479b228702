"""The store as the fault tests see it: asked over one connection, which may end between two questions."""

import contextlib

import psycopg
import pytest
from tests.faults.machinery.kept_store import StoreDatabase
from tests.stores import OpenDatabase, postgres_schema  # noqa: F401

WHO = "SELECT pg_backend_pid()"


def test_questions_share_a_connection_and_outlive_it(postgres_schema: OpenDatabase) -> None:  # noqa: F811
    with contextlib.closing(StoreDatabase(postgres_schema())) as store:
        [(first,)] = store.rows(WHO)
        store.digest()
        assert store.rows(WHO) == [(first,)]
        with psycopg.connect(store.place, autocommit=True) as knife:
            knife.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
        assert store.rows(WHO) != [(first,)]


def test_an_error_in_a_question_is_told_and_the_next_is_answered(postgres_schema: OpenDatabase) -> None:  # noqa: F811
    with contextlib.closing(StoreDatabase(postgres_schema())) as store:
        with pytest.raises(psycopg.errors.UndefinedTable):
            store.rows("SELECT 1 FROM nowhere")
        assert store.rows("SELECT ?::int", 7) == [(7,)]
