"""The tests that do not run on every store, each with its reason; the rest take the store as a parameter.

The parameter is called `store`, and its values begin with the kind: `sqlite-threads`, `postgres`."""

KINDS = ("sqlite",)
"""A test must run on each of these. `postgres` joins them with its store."""

_WAITS = "is to take the store as a parameter once there are two"
_OF_A_FILE = "the fault is one of a file: what SQLite writes, syncs and locks"

ONE_STORE_ONLY = {
    "tests/conformance/test_archives.py": "the file is the same, whichever store it was made from",
    "tests/conformance/test_backups.py::test_both_stores_keep_the_same_columns": "it lays the two side by side",
    "tests/conformance/test_days.py": "only PostgreSQL keeps days apart; what both promise is in test_history.py",
    "tests/conformance/test_old_code.py": "a file has one process: the old version is gone when the new one starts",
    "tests/conformance/test_sqlite.py": "the file itself: its migrations, its schema, its queries and their plans",
    "tests/faults/test_bad_input.py": _WAITS,
    "tests/faults/test_busy_and_full.py": _OF_A_FILE,
    "tests/faults/test_churn.py": "dead rows and vacuum are PostgreSQL's way; SQLite writes over them",
    "tests/faults/test_enqueue.py": "drivers of PostgreSQL, and transactions that overlap: a file has one writer",
    "tests/faults/test_l1_simulation.py": "one thread and virtual time, to which no server keeps",
    "tests/faults/test_l2_crash_points.py": _WAITS,
    "tests/faults/test_l3_kills.py": _WAITS,
    "tests/faults/test_l4_power_cuts.py": _OF_A_FILE,
    "tests/faults/test_l5_io_errors.py": _OF_A_FILE,
    "tests/faults/test_move.py": "a move goes from the one store to the other",
    "tests/faults/test_poison.py": _WAITS,
    "tests/faults/test_provider_faults.py": _WAITS,
    "tests/faults/test_schemathesis.py": _WAITS,
    "tests/faults/test_several_processes.py": "several processes, where a file is served by one alone",
    "tests/faults/test_sweeper_stress.py": _WAITS,
    "tests/faults/test_templates_cannot_hurt.py": "rendering alone; no store takes part",
    "tests/stories/test_accepting.py": _WAITS,
    "tests/stories/test_breaker.py": _WAITS,
    "tests/stories/test_dead_letters.py": _WAITS,
    "tests/stories/test_doors.py": _WAITS,
    "tests/stories/test_email_over_smtp.py": _WAITS,
    "tests/stories/test_enqueue.py": _WAITS,
    "tests/stories/test_first_message.py": _WAITS,
    "tests/stories/test_idempotency.py": _WAITS,
    "tests/stories/test_limits.py": _WAITS,
    "tests/stories/test_pauses.py": _WAITS,
    "tests/stories/test_preferences.py": _WAITS,
    "tests/stories/test_priorities.py": _WAITS,
    "tests/stories/test_quiet_hours.py": _WAITS,
    "tests/stories/test_real_parts.py": _WAITS,
    "tests/stories/test_restarts.py": _WAITS,
    "tests/stories/test_retries.py": _WAITS,
    "tests/stories/test_schedules.py": _WAITS,
    "tests/stories/test_templates.py": _WAITS,
    "tests/stories/test_watching.py": _WAITS,
}
"""A file, or `file::test`, and why."""
