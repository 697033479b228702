"""The reckoning: which of the five words each story gets."""

import pytest
from msgspec.structs import replace
from tests.faults.machinery.reckoning import (
    Answered,
    Asked,
    Crash,
    Ended,
    Reckoning,
    Word,
    reckon,
    render,
    render_crashes,
    render_problems,
)
from tests.stand_ins.ledger_provider.ledger import TakenMessage

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId, TenantId, new_batch_id, notification_id
from noroshi.domain.instants import Instant
from noroshi.domain.states import Status

HANAKO = NotificationId(notification_id(new_batch_id(1_700_000_000_000, 7), 0, 0))
TARO = NotificationId(notification_id(new_batch_id(1_700_000_000_000, 7), 1, 0))
ASKED = Asked(HANAKO, "hanako", "email", content_hash="c0ffee", at=Instant(10))
SENT = Ended(HANAKO, Status.SENT, Instant(30))
TAKEN = TakenMessage(Instant(20), DeliveryKey(DEFAULT_TENANT, HANAKO, EndpointId(1)), "hanako", "email", "c0ffee", 1)
UNANSWERED = replace(ASKED, answered=Answered.NOTHING)
REFUSED = replace(ASKED, answered=Answered.REFUSED)


def word_of(run: Reckoning) -> Word | None:
    assert len(run.findings) <= 1
    return run.findings[0].word if run.findings else None


@pytest.mark.parametrize(
    ("asked", "ended", "taken", "word"),
    [
        pytest.param([ASKED], [SENT], [TAKEN], Word.OK, id="sent once"),
        pytest.param([ASKED], [replace(SENT, status=Status.OPENED)], [TAKEN], Word.OK, id="opened"),
        pytest.param([ASKED], [replace(SENT, status=Status.SUPPRESSED)], [], Word.OK, id="suppressed"),
        pytest.param([ASKED], [replace(SENT, status=Status.DEAD_LETTERED)], [], Word.OK, id="dead letter"),
        pytest.param([ASKED], [replace(SENT, status=Status.DEAD_LETTERED)], [TAKEN], Word.OK, id="unknown, given up"),
        pytest.param([ASKED], [replace(SENT, status=Status.CANCELLED)], [TAKEN], Word.OK, id="sent, then cancelled"),
        pytest.param([ASKED], [], [], Word.LOST, id="not in the store"),  # I1
        pytest.param([ASKED], [], [TAKEN], Word.LOST, id="sent but forgotten"),  # I1
        pytest.param([ASKED], [replace(SENT, status=Status.SENDING)], [TAKEN], Word.LOST, id="stuck"),  # I1
        pytest.param([ASKED], [SENT], [], Word.LOST, id="marked, not sent"),  # I2
        pytest.param([ASKED], [SENT, SENT], [TAKEN], Word.UNEXPECTED, id="two rows"),  # I1
        pytest.param([], [SENT], [], Word.UNEXPECTED, id="in the store, not asked for"),  # I4
        pytest.param([], [], [TAKEN], Word.UNEXPECTED, id="at the provider, not asked for"),  # I4
        pytest.param([REFUSED], [SENT], [TAKEN], Word.UNEXPECTED, id="refused, yet sent"),
        pytest.param([UNANSWERED], [], [TAKEN], Word.UNEXPECTED, id="sent before it was kept"),
        pytest.param([ASKED], [SENT], [replace(TAKEN, user_id="taro")], Word.UNEXPECTED, id="other person"),  # I4
        pytest.param([ASKED], [SENT], [replace(TAKEN, channel="sms")], Word.UNEXPECTED, id="other channel"),  # I4
        pytest.param([ASKED], [SENT], [replace(TAKEN, content_hash="x")], Word.UNEXPECTED, id="other content"),  # I4
        pytest.param(
            [ASKED],
            [SENT],
            [replace(TAKEN, key=TAKEN.key._replace(tenant=TenantId(2)))],
            Word.UNEXPECTED,
            id="other tenant",
        ),  # I4
        pytest.param(
            [ASKED],
            [Ended(HANAKO, Status.CANCELLED, Instant(15))],
            [TAKEN],
            Word.UNEXPECTED,
            id="sent after the cancel",
        ),  # I2
        pytest.param([ASKED], [SENT], [TAKEN, TAKEN], Word.DUPLICATED, id="sent twice"),  # I3
        pytest.param(
            [ASKED],
            [SENT],
            [TAKEN, replace(TAKEN, key=TAKEN.key._replace(endpoint_id=EndpointId(2)))],
            Word.OK,
            id="two endpoints, once each",
        ),
        pytest.param([UNANSWERED], [SENT], [TAKEN], Word.RECOVERED, id="no answer, yet sent"),
        pytest.param([UNANSWERED], [], [], None, id="no answer, no trace"),
        pytest.param([REFUSED], [], [], None, id="refused, no trace"),
    ],
)
def test_every_story_has_one_word(
    asked: list[Asked], ended: list[Ended], taken: list[TakenMessage], word: Word | None
) -> None:
    run = reckon(asked, ended, taken)
    assert word_of(run) == word
    assert run.is_sound == (word in (Word.OK, Word.RECOVERED, None))


def test_copies_are_forgiven_up_to_the_sends_in_flight_at_the_crashes() -> None:
    # I3
    later = replace(TAKEN, at=Instant(40))
    assert not reckon([ASKED], [SENT], [TAKEN, later]).is_sound
    assert reckon([ASKED], [SENT], [TAKEN, later], [Crash(Instant(25), in_flight=1)]).is_sound
    assert not reckon([ASKED], [SENT], [TAKEN, later, later], [Crash(Instant(25), in_flight=1)]).is_sound


def test_the_bound_is_the_sum_over_the_crashes() -> None:
    run = reckon([ASKED], [SENT], [TAKEN], [Crash(Instant(1), 3), Crash(Instant(2), 0), Crash(Instant(3), 4)])
    assert run.bound == 7


def test_a_channel_that_cannot_double_is_never_forgiven() -> None:
    # I3
    asked, taken = replace(ASKED, channel="line"), replace(TAKEN, channel="line")
    run = reckon([asked], [SENT], [taken, taken], [Crash(Instant(15), in_flight=9)])
    assert run.strictly_doubled == 1
    assert not run.is_sound


def test_a_control_passes_only_if_loss_or_excess_copies_are_found() -> None:
    assert not reckon([ASKED], [SENT], [TAKEN], is_control=True).is_as_expected
    assert reckon([ASKED], [SENT], [], is_control=True).is_as_expected
    assert reckon([ASKED], [SENT], [TAKEN, TAKEN], is_control=True).is_as_expected
    assert not reckon([], [SENT], [TAKEN], is_control=True).is_as_expected


def test_loss_and_copies_are_laid_to_their_crash() -> None:
    crashes = [Crash(Instant(25), 1, "kill -9"), Crash(Instant(60), 0, "kill -9")]
    lost = Asked(TARO, "taro", "email", at=Instant(50))
    run = reckon([ASKED, lost], [SENT], [TAKEN, replace(TAKEN, at=Instant(40))], crashes)
    assert render_crashes(run).splitlines()[2:] == [
        "| 1 | 1970-01-01T00:00:00.000025+00:00 | kill -9 | 1 | 0 | 1 |",
        "| 2 | 1970-01-01T00:00:00.000060+00:00 | kill -9 | 0 | 1 | 0 |",
    ]
    assert "it is not in the store" in render_problems(run)


def test_the_report_is_a_table_in_five_words() -> None:
    good = reckon([ASKED], [SENT], [TAKEN])
    bad = reckon([ASKED], [], [])
    caught = reckon([ASKED], [], [], is_control=True)
    assert render({"good": good, "bad": bad, "caught": caught}).splitlines() == [
        "| run | crashes | ok | lost | unexpected | duplicated | recovered | copies | bound | verdict |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        "| good | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | sound |",
        "| bad | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | **NOT sound** |",
        "| caught | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | control: fault found |",
    ]
