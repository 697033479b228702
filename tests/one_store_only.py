"""The tests that do not run on every store, or not in every run, each with its reason; the rest take the store as a
parameter.

The parameter is called `store`, and its values begin with the kind: `sqlite-threads`, `postgres`."""

_OF_A_FILE = "the fault is one of a file: what SQLite writes, syncs and locks"

_OF_SEVERAL = "several processes, where a file is served by one alone"

ONE_STORE_ONLY = {
    "tests/conformance/test_archives.py": "the file is the same, whichever store it was made from",
    "tests/conformance/test_backups.py::test_both_stores_keep_the_same_columns": "it lays the two side by side",
    "tests/conformance/test_days.py": "only PostgreSQL keeps days apart; what both promise is in test_history.py",
    "tests/conformance/test_held_rows.py": "a file has one writer: no two transactions are amid their work",
    "tests/conformance/test_hints_between_processes.py": _OF_SEVERAL,
    "tests/conformance/test_many_processes.py::test_a_duty_has_one_holder_and_goes_to_another_when_it_is_not_kept": (
        _OF_SEVERAL
    ),
    "tests/conformance/test_old_code.py": "a file has one process: the old version is gone when the new one starts",
    "tests/conformance/test_silence.py": "a file has no sessions of other processes, and no locks that outlast a turn",
    "tests/conformance/test_sqlite.py": "the file itself: its migrations, its schema, its queries and their plans",
    "tests/faults/test_busy_and_full.py": _OF_A_FILE,
    "tests/faults/test_churn.py": "dead rows and vacuum are PostgreSQL's way; SQLite writes over them",
    "tests/faults/test_enqueue.py": "drivers of PostgreSQL, and transactions that overlap: a file has one writer",
    "tests/faults/test_f10_out_of_touch.py": _OF_SEVERAL,
    "tests/faults/test_f1_fleet_kills.py": _OF_SEVERAL,
    "tests/faults/test_f22_rolling_restarts.py": _OF_SEVERAL,
    "tests/faults/test_f6_server_restarts.py": "a file has no server that dies without its process",
    "tests/faults/test_f7_failover.py": "a file has no standby",
    "tests/faults/test_keeper.py": "only a file has a keeper",
    "tests/faults/test_l1_simulation.py": "thousands of seeded orders in one thread, to which no server keeps",
    "tests/faults/test_l4_power_cuts.py": _OF_A_FILE,
    "tests/faults/test_l5_io_errors.py": _OF_A_FILE,
    "tests/faults/test_move.py": "a move goes from the one store to the other",
    "tests/faults/test_pool_exhaustion.py": "a file is read and written without connections that could run out",
    "tests/faults/test_several_processes.py": _OF_SEVERAL,
    "tests/faults/test_templates_cannot_hurt.py": "rendering alone; no store takes part",
    "tests/stories/test_adding_a_channel.py": "it is about files of the repository; a channel meets no store",
    "tests/stories/test_how_to.py": "pages are the same on both; what they call is in test_command_line.py",
    "tests/stories/test_real_parts.py::test_a_folder_is_served_by_one_process_only": "a database is served by many",
}
"""A file, or `file::test`, and why."""

IN_THE_FULL_RUN_ONLY = {
    "tests/faults/test_l2_crash_points.py": "a hundred kills, and after each the leases run out: five minutes; in the "
    "gate random kills hit the same points (F1, F6)",
    "tests/faults/test_l3_kills.py": "ten kills of the one process that serves; in the gate any of several is killed "
    "thirty times (F1)",
    "tests/faults/test_poison.py": "five lone claims, each until its lease ends: minutes; what counts claims is in the "
    "conformance suite",
    "tests/faults/test_provider_faults.py": "hours of virtual time, in which every statement waits for a server: "
    "minutes; what judges outcomes is above the stores",
    "tests/faults/test_schemathesis.py": "a minute of random input, of which the store sees what passed the checks; "
    "hostile input by hand (test_bad_input) is in the gate on both",
}
"""Files whose tests are in the gate on SQLite alone and on PostgreSQL in `make test-full`, and why."""
