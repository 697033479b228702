"""B8's own parts on real connections: a server that only writes, and onlookers that count."""

import pytest
from bench.b08_streams import Onlookers, bare_fan_out
from bench.server import BenchError, free_port


def test_a_bare_fan_out_reaches_every_stream_once_a_round() -> None:
    found = bare_fan_out(5, 200)  # counts what every stream got
    assert found.rate > 0
    assert found.p99_ms is not None


def test_onlookers_that_find_nobody_say_so() -> None:
    with pytest.raises(BenchError, match="onlookers"):
        Onlookers(free_port(), "", ["/"])
