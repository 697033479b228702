"""Records the statements of this version for the next one, whenever one of them has changed:
`python -m tests.conformance.recording`."""

import json
from pathlib import Path

from noroshi.storage.postgres.sql import SQL, migrations

FOLDER = Path(__file__).parents[1] / "payloads"


def place_of(schema: int) -> Path:
    return FOLDER / f"postgres-statements-{schema:04}.json"


def record() -> Path:
    path = place_of(migrations()[-1][0])
    path.write_text(json.dumps(SQL, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(record())
