"""The tests that do not run on every store, each with its reason; the rest take the store as a parameter.

The parameter is called `store`, and its values begin with the kind: `sqlite-threads`, `postgres`."""

KINDS = ("sqlite",)
"""A test must run on each of these. `postgres` joins them with its store."""

_WAITS = "is to take the store as a parameter once there are two"
_OF_A_FILE = "the fault is one of a file: what SQLite writes, syncs and locks"

ONE_STORE_ONLY = {
    "tests/conformance/test_sqlite.py": "the file itself: its migrations, its schema, its queries and their plans",
    "tests/faults/test_bad_input.py": _WAITS,
    "tests/faults/test_busy_and_full.py": _OF_A_FILE,
    "tests/faults/test_l1_simulation.py": "one thread and virtual time, to which no server keeps",
    "tests/faults/test_l2_crash_points.py": _WAITS,
    "tests/faults/test_l3_kills.py": _WAITS,
    "tests/faults/test_l4_power_cuts.py": _OF_A_FILE,
    "tests/faults/test_l5_io_errors.py": _OF_A_FILE,
    "tests/faults/test_poison.py": _WAITS,
    "tests/faults/test_provider_faults.py": _WAITS,
    "tests/faults/test_schemathesis.py": _WAITS,
    "tests/faults/test_sweeper_stress.py": _WAITS,
    "tests/faults/test_templates_cannot_hurt.py": "rendering alone; no store takes part",
    "tests/stories/test_accepting.py": _WAITS,
    "tests/stories/test_breaker.py": _WAITS,
    "tests/stories/test_dead_letters.py": _WAITS,
    "tests/stories/test_doors.py": _WAITS,
    "tests/stories/test_email_over_smtp.py": _WAITS,
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
