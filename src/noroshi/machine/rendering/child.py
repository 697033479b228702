"""Orders come in on the standard input, answers go out on the standard output; run as a process of its own.

    python -m noroshi.machine.rendering.child

A template that takes too much takes the process with it: memory by RLIMIT_AS, CPU time by a timer whose signal is
left to its default action, so that it ends even a render that never comes back to Python. It imports little: it is
started again after each such end.
"""

import os
import resource
import signal
from functools import partial
from typing import BinaryIO

import minijinja._internal  # noqa: F401 - minijinja would import it later, when no file can be opened any more

from noroshi.machine.rendering.protocol import HELLO, LENGTH, decode_order, frame
from noroshi.machine.rendering.workshop import Workshop

MEMORY = 512 * 1024 * 1024
CPU_SECONDS = 0.25


def main() -> None:
    _confine()
    source, sink = open(0, "rb", closefd=False), open(1, "wb", closefd=False)  # noqa: SIM115 - until the end
    workshop = Workshop(partial(signal.setitimer, signal.ITIMER_PROF, CPU_SECONDS))
    sink.write(HELLO)
    sink.flush()
    while (body := _read_frame(source)) is not None:
        for answer in workshop.answers(decode_order(body)):
            signal.setitimer(signal.ITIMER_PROF, 0)
            sink.write(frame(answer))
            sink.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)


def _confine() -> None:
    """From here on: no more memory than allowed, no dump of other people's data, no file that can be opened or
    written. The stop signals of a terminal or a supervisor are the parent's: it finishes what it began, then goes,
    and the closing of the standard input ends this process too."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for nothing in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        resource.setrlimit(nothing, (0, 0))
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _read_frame(source: BinaryIO) -> bytes | None:
    """None when the parent is gone, also in the middle of a frame."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)
