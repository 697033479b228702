"""The Channel port with a weak spot: messages go in and are noted in a file, and one for a certain person kills us.

The product loads it by NOROSHI_CHANNELS="tests.stand_ins.deadly_channel:factory"; DEADLY_CHANNEL_NOTES names the file,
DEADLY_CHANNEL_TIMEOUT the seconds that an attempt may take.
"""

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome, Sent
from noroshi.machine.crash_points import DIED

FACTORY = "tests.stand_ins.deadly_channel:factory"
NOTES_VARIABLE = "DEADLY_CHANNEL_NOTES"
TIMEOUT_VARIABLE = "DEADLY_CHANNEL_TIMEOUT"
POISON = "poison"
"""The user id that ends the process, as a bug in a C library would."""


class DeadlyChannel:
    account = "deadly"
    channels = frozenset({"in_app"})
    max_batch = 100
    per_second = None

    def __init__(self, notes: Path, attempt_timeout: timedelta) -> None:
        self.attempt_timeout = attempt_timeout
        self._notes = notes

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        users = [attempt.recipient.user_id for attempt in attempts]
        with self._notes.open("a") as notes:
            if POISON in users:
                notes.write(f"died {len(users)}\n")
                notes.flush()
                os._exit(DIED)
            notes.writelines(f"took {user}\n" for user in users)
        return [Sent(f"{attempt.key.notification_id.hex()}-{attempt.number}") for attempt in attempts]

    def validate_target(self, address: str) -> str | None:
        return None


def factory(_parts: object) -> DeadlyChannel:
    seconds = float(os.environ.get(TIMEOUT_VARIABLE, "10"))
    return DeadlyChannel(Path(os.environ[NOTES_VARIABLE]), timedelta(seconds=seconds))
