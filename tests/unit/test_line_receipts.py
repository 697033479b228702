"""What LINE tells us later: whether it is LINE that tells it, and who has left or come back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from line_cast import ToldOutgoing, a_channel, answered
from tests.stand_ins.line.process import SECRET, user_id
from tests.stand_ins.line.webhooks import following, signature, unfollowing

from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.receipts import Reach
from noroshi.flow.send.line.messaging.receipts import is_signed, read_reaches

VECTOR = b'{"destination":"U0123456789abcdef0123456789abcdef","events":[]}'
VECTOR_SIGNATURE = "94lIexwJJhBAEvU5fHF/i4JXKbSzbpgGUoZUZlwge9Q="


def reaches(*webhooks: dict[str, Any]) -> list[Reach]:
    events = [event for webhook in webhooks for event in webhook["events"]]
    return read_reaches(msgspec.json.encode({"destination": "U", "events": events}))


def test_the_signature_is_the_one_of_the_vector() -> None:  # providers.md 13
    assert is_signed([SECRET], VECTOR, VECTOR_SIGNATURE)
    assert read_reaches(VECTOR) == []


@pytest.mark.parametrize("forged", ["", "x", VECTOR_SIGNATURE[:-1], VECTOR_SIGNATURE.lower(), "é" * 44])
def test_any_other_signature_is_refused(forged: str) -> None:
    assert not is_signed([SECRET], VECTOR, forged)


@given(place=some.integers(0, len(VECTOR) - 1), bit=some.integers(0, 7))
def test_a_bit_that_was_changed_on_the_way_is_noticed(place: int, bit: int) -> None:
    changed = bytearray(VECTOR)
    changed[place] ^= 1 << bit
    assert not is_signed([SECRET], bytes(changed), VECTOR_SIGNATURE)


def test_while_a_secret_is_being_replaced_both_are_good_and_no_third() -> None:
    old, new = "a" * 32, "b" * 32
    assert all(is_signed([old, new], VECTOR, signature(VECTOR, secret)) for secret in (old, new))
    assert not is_signed([old, new], VECTOR, VECTOR_SIGNATURE)
    assert not is_signed([], VECTOR, VECTOR_SIGNATURE)


def test_whoever_leaves_can_be_reached_no_longer_and_whoever_follows_again() -> None:
    left, came = reaches(unfollowing(user_id(1), 1_700_000_000_123), following(user_id(2), 5))
    assert left == Reach("line", user_id(1), Instant(1_700_000_000_123_000), is_reachable=False, reason="unfollowed")
    assert came == Reach("line", user_id(2), Instant(5_000), is_reachable=True, reason="unfollowed")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message", "timestamp": 1, "source": {"type": "user", "userId": user_id(1)}, "message": {"id": "1"}},
        {"type": "postback", "timestamp": 1, "source": {"userId": user_id(1)}, "postback": {"data": "x"}},
        {"type": "unfollow", "timestamp": 1, "source": {"type": "group", "groupId": "C1"}},
        {"type": "unfollow", "timestamp": 1},
        {"type": "unfollow", "timestamp": 1, "source": {"userId": "nobody"}},
        {"type": "of a kind that does not exist yet", "timestamp": 1, "news": [1, {"a": None}]},
    ],
)
def test_other_events_say_nothing_that_we_act_on(event: dict[str, Any]) -> None:
    assert reaches({"events": [event]}) == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"\xff", b'{"events": 1}', b"[" * 100_000])
def test_what_is_signed_and_no_webhook_is_a_problem(raw: bytes) -> None:
    channel = a_channel(ToldOutgoing(answered(200)))
    with pytest.raises(ProblemError, match="bad_json"):
        channel.read_receipts({"x-line-signature": signature(raw)}, raw)


def test_what_is_not_signed_is_not_even_read() -> None:
    channel = a_channel(ToldOutgoing(answered(200)))
    assert channel.read_receipts({}, b"[" * 100_000) is None
    assert channel.read_receipts({"x-line-signature": VECTOR_SIGNATURE}, VECTOR) == []
