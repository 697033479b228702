"""Records the statements of this version for the next one: `python -m tests.conformance.recording`, at each release."""

import json
from pathlib import Path

from noroshi.storage.postgres.sql import SQL, migrations

FOLDER = Path(__file__).parents[1] / "payloads"


def record() -> Path:
    path = FOLDER / f"postgres-statements-{migrations()[-1][0]:04}.json"
    path.write_text(json.dumps(SQL, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(record())
