"""The statements of `enqueue`, one of each for every database; `{name}` stands where the driver wants its mark."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct


class Dialect(Enum):
    POSTGRES = "postgresql"
    SQLITE = "sqlite"


class Statement(Struct, frozen=True):
    """A text with its values, in the order in which they stand in it."""

    text: str
    values: Mapping[str, Any]

    def with_marks(self, mark: str) -> str:
        """`?`, `%s`, `$` (numbered) or `:` (named)."""
        marks = {
            name: f"${number}" if mark == "$" else f":{name}" if mark == ":" else mark
            for number, name in enumerate(self.values, 1)
        }
        return self.text.format(**marks)


INSERT = {
    Dialect.POSTGRES: """
INSERT INTO noroshi.requests (tenant, request_id, idempotency_key, body, created_by, created_at)
SELECT t.tenant, CAST({request_id} AS bytea), CAST({idempotency_key} AS text), CAST({body} AS bytea),
    CAST({created_by} AS text), noroshi.noroshi_now()
FROM noroshi.tenants t WHERE t.name = CAST({tenant} AS text)
ON CONFLICT DO NOTHING RETURNING request_id""",
    Dialect.SQLITE: """
INSERT INTO main.requests (tenant, request_id, idempotency_key, body, created_by, created_at)
SELECT t.tenant, {request_id}, {idempotency_key}, {body}, {created_by}, {created_at}
FROM main.tenants t WHERE t.name = {tenant}
ON CONFLICT DO NOTHING RETURNING request_id""",
}

FIND = {
    Dialect.POSTGRES: """
SELECT r.request_id FROM noroshi.requests r JOIN noroshi.tenants t ON t.tenant = r.tenant
WHERE t.name = CAST({tenant} AS text) AND r.idempotency_key = CAST({idempotency_key} AS text)""",
    Dialect.SQLITE: """
SELECT r.request_id FROM main.requests r JOIN main.tenants t ON t.tenant = r.tenant
WHERE t.name = {tenant} AND r.idempotency_key = {idempotency_key}""",
}

FILES = Statement("PRAGMA database_list", {})
LIBRARY_VERSION = Statement("SELECT sqlite_version()", {})
AUTOCHECKPOINT = Statement("PRAGMA wal_autocheckpoint", {})
