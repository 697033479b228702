"""The condition of a PostgreSQL server, as far as Noroshi depends on it."""

from datetime import datetime

from noroshi.domain.instants import Instant, at
from noroshi.ports.clock import Clock
from noroshi.storage.postgres.connection import SCHEMA, Connection
from noroshi.storage.postgres.days import present_days
from noroshi.storage.signs import PostgresSigns, TableSigns

_SETTINGS = (
    *("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"),
    *("autovacuum", "autovacuum_naptime", "max_connections"),
)
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_OLDEST = (
    "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_TABLES = """
    SELECT coalesce(parent.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint,
        sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint, max(s.last_autovacuum)
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
    WHERE s.schemaname = $1 AND c.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC"""


async def read_signs(connection: Connection, clock: Clock) -> PostgresSigns:
    began = clock.now()
    theirs = await connection.fetchval(_NOW)
    ahead = (theirs - (began + clock.now()) / 2) / 1_000_000
    return PostgresSigns(
        version=int(await connection.fetchval("SHOW server_version_num")),
        settings={name: str(await connection.fetchval(f"SHOW {name}")) for name in _SETTINGS},
        clock_ahead=ahead,
        connections=await connection.fetchval(_CONNECTIONS),
        oldest_transaction=await connection.fetchval(_OLDEST),
        standbys=await connection.fetchval("SELECT count(*) FROM pg_stat_replication"),
        is_standby=await connection.fetchval("SELECT pg_is_in_recovery()"),
        days=len(await present_days(connection)),
        tables=[
            TableSigns(name, size, live, dead, _instant(vacuumed_at))
            for name, size, live, dead, vacuumed_at in await connection.fetch(_TABLES, SCHEMA)
        ],
    )


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else at(moment)
