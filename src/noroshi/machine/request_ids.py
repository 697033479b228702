"""The system's time and chance in, the id of a new request out; loaded into callers' processes, so it is small."""

import os
import time

from noroshi.domain.ids import RequestId, new_request_id
from noroshi.domain.instants import Instant

_RANDOM_BYTES = 10


def draw_request_id() -> tuple[RequestId, Instant]:
    """An id and its moment. Nothing is drawn ahead: a fork or another thread would throw the same dice."""
    now = Instant(time.time_ns() // 1000)
    return new_request_id(now // 1000, int.from_bytes(os.urandom(_RANDOM_BYTES), "big")), now
