"""What LINE's answers mean: every row of its table, and what is none."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from line_cast import answered
from tests.stand_ins.line.process import user_id

from noroshi.domain.line import LineAnswer
from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.outgoing import NoAnswer, NotAllowed, NotSent
from noroshi.flow.send.line.messaging.outcomes import Kind, classify, outcome_of

HER = user_id(1)
REST = timedelta(seconds=4)
SAID: dict[str, Any] = msgspec.json.decode((Path(__file__).parents[1] / "payloads/line/answers.json").read_bytes())


def of(status: int, said: str = "", **headers: str) -> Outcome:
    return outcome_of(answered(status, SAID[said] if said else None, **headers), HER, REST)


@pytest.mark.parametrize(
    ("status", "said", "kind", "code"),
    [
        (400, "bad_message", Rejected, "LINE_400"),
        (400, "bad_recipient", Gone, "LINE_400_TO"),
        (400, "bad_recipient_in_one_sentence", Gone, "LINE_400_TO"),
        (400, "bad_recipient_and_message", Rejected, "LINE_400"),
        (400, "", Rejected, "LINE_400"),
        (401, "token_invalid", Misconfigured, "LINE_401"),
        (403, "not_allowed", Misconfigured, "LINE_403"),
        (404, "not_found", Misconfigured, "LINE_404"),
        (410, "", Rejected, "LINE_410"),
        (413, "", Rejected, "LINE_413"),
        (415, "", Rejected, "LINE_415"),
        (418, "", Rejected, "LINE_418"),
        (429, "monthly_limit", Misconfigured, "LINE_MONTHLY_LIMIT"),
        (429, "rate_limit", Retry, "LINE_RATE_LIMITED"),
        (429, "concurrent", Retry, "LINE_CONCURRENT"),
        (429, "", Retry, "LINE_RATE_LIMITED"),
        (500, "server_error", Retry, "LINE_500"),
        (502, "", Retry, "LINE_502"),
        (503, "", Retry, "LINE_503"),
        (599, "", Retry, "LINE_599"),
        (302, "", Misconfigured, "LINE_302"),
    ],
)  # N1.9, providers.md 7.3
def test_every_documented_refusal_has_its_meaning(status: int, said: str, kind: type, code: str) -> None:
    outcome = of(status, said)
    assert type(outcome) is kind
    assert getattr(outcome, "code", None) == code


@pytest.mark.parametrize("status", range(200, 600))
def test_the_channel_and_the_reservations_call_the_same_answers_sent(status: int) -> None:
    # L8, providers.md 7.3
    assert LineAnswer(status, "{}").is_sent is (classify(status, {})[0] is Kind.SENT)


def test_what_line_took_is_sent_under_its_message_id() -> None:
    assert of(200, "sent", x_line_request_id="r-1") == Sent("461230966842064897")


def test_where_line_names_no_message_the_request_names_it() -> None:
    assert of(200, "sent_before_ids_were_told", x_line_request_id="r-1") == Sent("r-1")
    assert of(202) == Sent("")


def test_what_was_taken_before_is_sent_under_the_request_that_was() -> None:  # L10
    headers = {"x_line_request_id": "r-2", "x_line_accepted_request_id": "r-1"}
    assert of(409, "accepted_before", **headers) == Sent("r-1")
    assert of(409, "accepted_before") == Sent("461230966842064897")


@pytest.mark.parametrize("reply", [answered(200, b"<html>"), answered(200, b'{"sent', is_whole=False)])
def test_a_success_that_cannot_be_read_is_unknown(reply: Any) -> None:
    assert isinstance(outcome_of(reply, HER, REST), Unknown)


def test_a_limit_of_the_plan_stops_the_account_and_one_of_the_pace_lets_it_rest() -> None:
    paced = of(429, "rate_limit")
    assert paced == Retry("LINE_RATE_LIMITED", SAID["rate_limit"]["message"], REST, Scope.ACCOUNT)
    assert isinstance(of(429, "monthly_limit"), Misconfigured)


@pytest.mark.parametrize(("said", "wait"), [("7", 7), ("0", 4), ("", 4), ("soon", 4), ("9" * 40, 4), ("-3", 4)])
def test_a_retry_after_goes_before_our_own(said: str, wait: int) -> None:  # N6.1
    outcome = of(429, "rate_limit", retry_after=said)
    assert isinstance(outcome, Retry) and outcome.after == timedelta(seconds=wait)


def test_a_failure_of_lines_own_concerns_one_message() -> None:
    outcome = of(503, retry_after="3")
    assert outcome == Retry("LINE_503", "", timedelta(seconds=3))


def test_without_a_connection_the_account_rests_and_no_try_is_used_up() -> None:
    outcome = outcome_of(NotSent("NO_CONNECTION", "Connection refused"), HER, REST)
    assert outcome == Retry("NO_CONNECTION", "Connection refused", scope=Scope.ACCOUNT)


def test_without_an_answer_nobody_knows() -> None:
    assert outcome_of(NoAnswer("TIMEOUT"), HER, REST) == Unknown("TIMEOUT")
    assert isinstance(outcome_of(NotAllowed("private"), HER, REST), Misconfigured)


def test_the_words_of_a_refusal_are_kept_without_the_persons_id() -> None:  # I12
    said = {"message": f"bad {HER}", "details": [{"property": "messages[0].text", "message": f"{HER}?"}]}
    outcome = outcome_of(answered(400, said), HER, REST)
    assert outcome == Rejected("LINE_400", "bad …; messages[0].text: …?")


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text() | some.sampled_from(["message", "details"]), inner),
    max_leaves=8,
)


@given(status=some.integers(100, 599), body=JSON | some.binary())
def test_whatever_comes_back_is_one_of_the_outcomes(status: int, body: Any) -> None:
    outcome = outcome_of(answered(status, body), HER, REST)
    assert isinstance(outcome, Sent | Retry | Gone | Rejected | Misconfigured | Unknown)
    assert isinstance(outcome, Sent | Unknown) == (status in {200, 202, 409})
