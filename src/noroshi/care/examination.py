"""The examination: settings in, findings about machine, settings and store out. It reads, and changes nothing."""

from noroshi.care.condition import judge_postgres, judge_sqlite, judge_vitals
from noroshi.care.errors import CareError
from noroshi.care.findings import Finding, fine, problem, warning
from noroshi.care.floors import examine_versions
from noroshi.care.opening import opened_tables
from noroshi.care.quotas import examine_quotas
from noroshi.care.surroundings import examine_surroundings
from noroshi.settings import Settings
from noroshi.storage.errors import UnreachableError, UnsafeStoreError
from noroshi.storage.postgres.sql import migrations as postgres_migrations
from noroshi.storage.signs import SqliteSigns
from noroshi.storage.sqlite.sql import migrations as sqlite_migrations
from noroshi.storage.tables import StoreTables
from noroshi.storage.vitals import read_vitals


async def examine(settings: Settings) -> list[Finding]:
    findings = [*examine_versions(), *examine_surroundings(settings), *await examine_quotas(settings)]
    if not settings.is_on_postgres and not settings.store_path.exists():
        return [*findings, warning("store", f"{settings.store_path} is not there yet", "the first start makes it")]
    try:
        async with opened_tables(settings, is_reader=True) as tables:
            findings += await _examine_store(tables)
    except (CareError, UnreachableError, UnsafeStoreError) as error:
        findings.append(problem("store", str(error), "start it, or set NOROSHI_STORE"))
    return findings


async def _examine_store(tables: StoreTables) -> list[Finding]:
    signs = await tables.signs()
    findings = [*(judge_sqlite(signs) if isinstance(signs, SqliteSigns) else judge_postgres(signs))]
    number = await tables.schema()
    newest = (sqlite_migrations if tables.kind == "sqlite" else postgres_migrations)()[-1][0]
    if number > newest:
        return [*findings, problem("schema", f"{number}, this version knows {newest}", "use the newer version")]
    if number < newest:
        return [*findings, warning("schema", f"{number} of {newest}", "`noroshi migrate`, or the next start")]
    return [*findings, fine("schema", str(number)), *judge_vitals(await read_vitals(tables))]
