"""schemathesis against a real server: whatever the OpenAPI document allows, and much that it does not, for a while."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.callers import ForeignCaller
from tests.faults.machinery.caller import NOTIFICATIONS, TEMPLATE, Caller
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.faults.machinery.processes import ServedNoroshi
from tests.faults.machinery.report import publish, section

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
SECONDS = {"sqlite": 1_800 if IS_FULL else 60, "postgres": 900 if IS_FULL else 20}
ENOUGH = {"sqlite": 200, "postgres": 60}
"""Requests without which nothing was tested."""

CONTROL_SECONDS = 20
ONLY = ("--include-operation-id", "show_user", "--phases", "coverage")
LONGEST_START = 60

STREAM = "/api/v1/users/{user_id}/inbox/stream"
"""Its answer has no end; tests/faults/test_inbox_streams.py asks for it."""

NOT_CHECKED = "positive_data_acceptance"
"""A schema cannot say everything: that a template exists, which zones there are, whose cursor it is. These are 422."""

pytestmark = pytest.mark.xdist_group("schemathesis")


class House(Struct):
    """A server, and its own description with ids in it that exist."""

    noroshi: ServedNoroshi
    key: str
    document: dict[str, Any]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Iterator[House]:
    data = tmp_path_factory.mktemp("schemathesis") / "data"
    with store.opened(data) as kept, ServedNoroshi(data, kept.environment | {"NOROSHI_CATCHER": "on"}) as noroshi:
        key = noroshi.create_key()
        noroshi.start()
        caller = Caller(noroshi.url, key)
        caller.seed(3)
        document = caller.call("GET", "/openapi.json").fields
        del document["paths"][STREAM]
        give_examples(document, ids_of(caller, kept))
        yield House(noroshi, key, document)


def ids_of(caller: Caller, kept: KeptStore) -> dict[str, Any]:
    """One of each thing that the API names by an id."""
    with ForeignCaller(kept.place) as shop:
        request_id = shop.enqueue(user_ids=["user-0"], template_id=TEMPLATE, data={"number": 1})
        shop.commit()
    device = caller.call("POST", "/api/v1/users/user-0/devices", {"platform": "ios", "device_token": "token"})
    caller.call("PUT", "/api/v1/users/user-1", {"phone": "+819012345678"})
    # The template has no text for this channel, and so the message is a dead letter at once.
    batch = caller.notify(1, "user-0", "user-1", "nobody", channels=["in_app", "sms"])
    letters = caller.call("GET", "/api/v1/dead-letters").fields["items"]
    pause = caller.call("POST", "/api/v1/pauses", {"kind": "channel", "name": "voice"})
    farm = caller.call("POST", "/api/v1/farms", {"name": "Farm"})
    caller.call("PUT", "/api/v1/customers/hanako", {"line_user_id": "U" + "0" * 32})
    times = {"pickup_start": "2100-01-01T10:00:00+09:00", "pickup_end": "2100-01-01T11:00:00+09:00"}
    wanted = {"farm_id": farm.fields["farm_id"], "customer_id": "hanako", **times}
    reservation_id = caller.call("POST", "/api/v1/reservations", wanted).fields["reservation_id"]
    caller.call("POST", f"/reservations/{reservation_id}/cancel")
    return {
        "farm_id": farm.fields["farm_id"],
        "customer_id": "hanako",
        "reservation_id": reservation_id,
        "job_id": 1,
        "user_id": "user-0",
        "template_id": TEMPLATE,
        "batch_id": batch.fields["batch_id"],
        "notification_id": letters[0]["notification_id"],
        "token_id": device.fields["token_id"],
        "dead_letter_id": letters[0]["dead_letter_id"],
        "pause_id": pause.fields["pause_id"],
        "caught_id": 1,
        "position": 0,
        "request_id": request_id,
        "account": "line",
        "entry_id": 1,
    }


def give_examples(document: dict[str, Any], ids: dict[str, Any]) -> None:
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["example"] = ids[parameter["name"]]
    body = document["paths"][NOTIFICATIONS]["post"]["requestBody"]["content"]["application/json"]
    body["example"] = {"user_ids": ["user-0", "user-1"], "template_id": TEMPLATE, "data": {"number": 1}}


def run(house: House, folder: Path, document: dict[str, Any], seconds: int, *more: str) -> tuple[int, str]:
    """schemathesis's exit code and what it printed."""
    (folder / "openapi.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", house.noroshi.url]
    options = ["--max-time", str(seconds), "--mode", "all", "--exclude-checks", NOT_CHECKED, *more]
    authorized = ["--header", f"Authorization: Bearer {house.key}"]
    seed = [] if IS_FULL else ["--seed", "1"]
    ended = subprocess.run(
        [*command, *options, *authorized, *seed],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + LONGEST_START,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_every_answer_is_one_that_the_document_names_and_none_is_a_5xx(
    store: Stores, house: House, tmp_path: Path
) -> None:
    # issue 2 "Bad input", L7
    seconds = SECONDS[store.kind]
    code, printed = run(house, tmp_path, house.document, seconds)
    generated = re.search(r"([\d,]+) generated", printed)
    operations = re.search(r"Tested: (\d+)", printed)
    assert code == 0, printed[-6000:]
    assert generated is not None
    assert operations is not None
    assert int(operations[1]) == sum(len(of_path) for of_path in house.document["paths"].values())
    assert int(generated[1].replace(",", "")) > ENOUGH[store.kind]
    assert Caller(house.noroshi.url, None).call("GET", "/readyz").status == 200
    assert "request_failed" not in house.noroshi.log()
    publish(
        section("schemathesis", store.kind),
        f"{generated[1]} requests in {seconds} s, to all {operations[1]} operations, within and outside of what the "
        "document allows: no 5xx, no answer that it does not describe.",
    )


def test_control_an_answer_that_the_document_does_not_name_is_found(house: House, tmp_path: Path) -> None:
    document = json.loads(json.dumps(house.document))
    del document["paths"]["/api/v1/users/{user_id}"]["get"]["responses"]["404"]
    code, printed = run(house, tmp_path, document, CONTROL_SECONDS, *ONLY)
    assert code == 1, printed[-3000:]
    assert "undocumented" in printed.lower(), printed[-3000:]
