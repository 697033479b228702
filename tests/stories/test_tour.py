"""The README's tour, word for word: only the address and the key are those of the server that the test has started."""

import json
import re
from pathlib import Path
from time import monotonic

import pytest

from tests.stories.demonstration import Demonstration, blocks, demonstrated, each_store  # noqa: F401

pytestmark = pytest.mark.xdist_group("tour")

PATIENCE = 20
README = Path(__file__).parents[2] / "README.md"


def test_the_tour_of_the_readme_works_word_for_word(shown: Demonstration) -> None:  # issue 4
    send, see, explain, write = blocks(README, "sh", "A tour in one minute")
    assert json.loads(shown.done(send))["accepted"] == 1
    deadline = monotonic() + PATIENCE
    while "へようこそ" not in shown.done(see):
        assert monotonic() < deadline
    assert "hanako on email: SENT  welcome v1 ja" in shown.done(explain)
    assert re.search(r"taro +sms +SENT", shown.done(write))


def test_the_same_again_is_a_duplicate_as_the_readme_says(shown: Demonstration) -> None:  # N9.1
    send, *_ = blocks(README, "sh", "A tour in one minute")
    shown.done(send)
    assert json.loads(shown.done(send))["reasons"] == {"duplicate": 1}
