"""The condition of a store: its vitals and its database's signs in, findings out."""

from collections.abc import Iterator
from datetime import timedelta

from noroshi.care.findings import Finding, fine, problem, warning
from noroshi.domain.marks import WHY_NOT_SERVED, Mark
from noroshi.storage.signs import PostgresSigns, SqliteSigns, TableSigns
from noroshi.storage.vitals import Vitals

_SECOND = 1_000_000
_LATE = 60
_VERY_LATE = 900
_MANY_DEAD_LETTERS = 1_000
_LARGE_LOG = 200_000_000
_CLOCK_OFF = 1.0
_CLOCK_FAR_OFF = 60.0
_LONG_TRANSACTION = 600
_CONNECTIONS_LEFT = 10
_DEAD_SHARE = 0.5
_DEAD_ROWS = 100_000
_DAYS_KEPT = 100
_OLDEST_SERVER = 140_000


def judge_vitals(vitals: Vitals) -> Iterator[Finding]:
    yield from _judge_marks(vitals)
    yield fine("unfinished", f"{vitals.unfinished} deliveries")
    for lane, due in sorted(vitals.oldest.items()):
        yield _judge_lag(lane, max(vitals.now - due, 0) / _SECOND, is_paused=bool(vitals.paused))
    requests = f"{vitals.requests} wait, {vitals.dead_requests} are dead"
    if vitals.dead_requests >= _MANY_DEAD_LETTERS:
        yield warning("requests", requests, "GET /api/v1/requests?state=dead says why; mend and retry them")
    else:
        yield fine("requests", requests)
    leases = f"{vitals.leases} being sent, {vitals.leases_run_out} of these leases have run out"
    if vitals.leases_run_out:
        yield warning("leases", leases, "the sweeper of a running server takes these up within seconds: does one run?")
    else:
        yield fine("leases", leases)
    letters = f"{vitals.dead_letters} wait for a person"
    if vitals.dead_letters >= _MANY_DEAD_LETTERS:
        yield warning("dead letters", letters, "GET /api/v1/dead-letters says why; replay or discard them")
    else:
        yield fine("dead letters", letters)
    if vitals.paused:
        yield warning("pauses", ", ".join(vitals.paused), "DELETE /api/v1/pauses/{id} when it is time")
    if vitals.blocked:
        yield warning("accounts", f"left alone for now: {', '.join(vitals.blocked)}", "the provider or its keys")


def _judge_marks(vitals: Vitals) -> Iterator[Finding]:
    if Mark.RESTORED in vitals.marks:
        yield warning("restored", "everything is paused since the restore", "`noroshi restore --review`, then --resume")
    for mark, why in WHY_NOT_SERVED.items():
        if mark in vitals.marks:
            yield problem("store", why, "it is not served before")


def _judge_lag(lane: str, seconds: float, *, is_paused: bool) -> Finding:
    text = f"the oldest is due since {timedelta(seconds=round(seconds))}"
    if seconds < _LATE or is_paused:
        return fine(lane, text)
    advice = "is a server or worker running, and is the provider well? More workers: NOROSHI_WORKERS"
    return (problem if seconds >= _VERY_LATE else warning)(lane, text, advice)


def judge_sqlite(signs: SqliteSigns) -> Iterator[Finding]:
    text = f"file {signs.file_bytes / 1e6:.1f} MB, log {signs.log_bytes / 1e6:.1f} MB, journal {signs.journal_mode}"
    if signs.log_bytes > _LARGE_LOG:
        yield warning("store", text, "somebody reads for very long (a backup, a forgotten sqlite3 shell)")
    else:
        yield fine("store", text)


def judge_postgres(signs: PostgresSigns) -> Iterator[Finding]:
    version = f"PostgreSQL {signs.version // 10_000}.{signs.version % 10_000}"
    if signs.version < _OLDEST_SERVER:
        yield problem("server", version, "use 14 or newer")
    else:
        yield fine("server", version)
    yield from _judge_commits(signs)
    yield _judge_clock(signs.clock_ahead)
    yield _judge_connections(signs)
    if signs.oldest_transaction > _LONG_TRANSACTION:
        yield warning(
            "transactions",
            f"the oldest is open since {timedelta(seconds=round(signs.oldest_transaction))}",
            "dead rows pile up behind it: end it (pg_stat_activity says whose it is)",
        )
    if signs.days > _DAYS_KEPT:
        yield warning("days", f"{signs.days} days are kept", "old ones hold something unfinished: see the oldest above")
    yield from _judge_tables(signs)


def _judge_commits(signs: PostgresSigns) -> Iterator[Finding]:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if signs.settings[name] == "off":
            yield problem(name, "off: what was accepted may be lost in a crash", f"set {name} = on")
    if signs.is_standby:
        yield problem("replication", "this is a standby: it cannot be written", "name the primary")
    elif signs.standbys and not signs.settings["synchronous_standby_names"]:
        yield warning(
            "replication",
            f"{signs.standbys} standbys, none synchronous: a fail-over may lose the last commits",
            "set synchronous_standby_names, or accept it",
        )
    else:
        standbys = f"{signs.standbys} standbys" if signs.standbys else "no standby"
        yield fine("commits", f"synchronous_commit {signs.settings['synchronous_commit']}, {standbys}")


def _judge_clock(ahead: float) -> Finding:
    text = f"the database's is {abs(ahead):.3f} s {'ahead' if ahead >= 0 else 'behind'}"
    if abs(ahead) < _CLOCK_OFF:
        return fine("clock", text)
    advice = "let both follow a time server (NTP): due times, leases and expiry go by the database's clock"
    return (problem if abs(ahead) >= _CLOCK_FAR_OFF else warning)("clock", text, advice)


def _judge_connections(signs: PostgresSigns) -> Finding:
    most = int(signs.settings["max_connections"])
    text = f"{signs.connections} of {most} used"
    if most - signs.connections < _CONNECTIONS_LEFT:
        return problem("connections", text, "raise max_connections, or run fewer processes (each takes up to 9)")
    return fine("connections", text)


def _judge_tables(signs: PostgresSigns) -> Iterator[Finding]:
    if signs.settings["autovacuum"] == "off":
        yield problem("autovacuum", "off: tables grow without end", "set autovacuum = on")
    for table in signs.tables:
        if table.dead > _DEAD_ROWS and table.dead > _DEAD_SHARE * table.live:
            yield warning(
                table.name,
                f"{table.dead} dead rows beside {table.live} live ones",
                "autovacuum does not keep up: lower autovacuum_naptime (10s), look for long transactions",
            )
    whole = sum(table.bytes for table in signs.tables)
    largest = ", ".join(_shown(table) for table in signs.tables[:5])
    yield fine("tables", f"{whole / 1e6:.1f} MB; {largest}")


def _shown(table: TableSigns) -> str:
    vacuumed = "" if table.vacuumed_at is None else ", vacuumed"
    return f"{table.name} {table.bytes / 1e6:.1f} MB ({table.live} rows, {table.dead} dead{vacuumed})"
