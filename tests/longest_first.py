"""The tests that take longest, by file, longest first: workers begin with these, so that none is left alone with one
at the end. The order is that of the seconds their groups took (`make test`, two cores, November 2026)."""

LONGEST_FIRST = (
    "tests/faults/test_l2_crash_points.py",
    "tests/faults/test_l3_kills.py",
    "tests/faults/test_l1_simulation.py",
    "tests/faults/test_f1_fleet_kills.py",
    "tests/faults/test_inbox_streams.py",
    "tests/faults/test_f22_rolling_restarts.py",
    "tests/faults/test_f6_server_restarts.py",
    "tests/faults/test_provider_faults.py",
    "tests/faults/test_bad_input.py",
    "tests/faults/test_f23_restored.py",
    "tests/faults/test_schemathesis.py",
    "tests/faults/test_f10_out_of_touch.py",
    "tests/faults/test_several_processes.py",
    "tests/stories/test_adding_a_channel.py",
)


def place_in_line(nodeid: str) -> int:
    """Those that are not named come after all that are, in the order they had."""
    file = nodeid.partition("::")[0]
    return LONGEST_FIRST.index(file) if file in LONGEST_FIRST else len(LONGEST_FIRST)
