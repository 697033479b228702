"""`python -m tests.services start|stop|status`: keeps every service running between test runs, for `make services`."""

import sys

from tests.services.installation import ServiceMissingError
from tests.services.shared import SERVICES, keep, release, standing


def start() -> int:
    missing = 0
    for name in SERVICES:
        try:
            print(f"{name}: {keep(name).url}")
        except ServiceMissingError as why:
            missing += 1
            print(f"{name}: missing: {why}")
    return 1 if missing else 0


def stop() -> int:
    for name in SERVICES:
        print(f"{name}: {'stopped' if release(name) else 'was not running'}")
    return 0


def status() -> int:
    for name in SERVICES:
        known = standing(name)
        print(f"{name}: {known.url if known else 'not running'}")
    return 0


COMMANDS = {"start": start, "stop": stop, "status": status}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in COMMANDS:
        sys.exit(COMMANDS[sys.argv[1]]())
    sys.exit("usage: python -m tests.services " + "|".join(COMMANDS))
