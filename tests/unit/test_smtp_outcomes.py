"""What a relay's answers mean: every row of the protocol's table, at every place where it can come."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope
from noroshi.flow.send.email.smtp.outcomes import _BY_CODE, _BY_ENHANCED, ReplyJudge, Stage, classify
from noroshi.flow.send.email.smtp.replies import NonsenseError, Reply, take_reply

S, M, R, D, C = Stage.SESSION, Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.CONTENT

HOLD, LATER, WAIT, GONE, REJECTED, CONFIG = "hold", "later", "wait", "gone", "rejected", "config"

CASES = [
    (S, "421 4.3.2 shutting down", HOLD),
    (M, "421 4.4.2 closing", HOLD),
    (C, "421 4.7.0 too fast", HOLD),
    (R, "450 4.2.0 greylisted", WAIT),
    (R, "450 4.2.1 busy", WAIT),
    (R, "450 greylisted, come back", WAIT),
    (R, "451 4.7.1 greylisted", WAIT),
    (R, "451 4.3.0 lookup failed", LATER),
    (R, "451 4.4.1 no answer", LATER),
    (C, "451 4.7.1 no DNS for DMARC", LATER),
    (C, "451 4.3.0 local error", LATER),
    (M, "451 4.7.1 sender deferred", HOLD),
    (R, "452 4.2.2 mailbox full", WAIT),
    (M, "452 4.3.1 no storage", HOLD),
    (R, "452 4.5.3 too many recipients", LATER),
    (C, "454 4.7.0 Throttling failure: Maximum sending rate exceeded", HOLD),
    (S, "454 4.7.0 TLS not available", HOLD),
    (R, "450 4.7.28 unusual rate", HOLD),
    (M, "500 5.5.2 syntax", REJECTED),
    (R, "501 5.5.4 syntax", REJECTED),
    (R, "501 5.1.3 bad address syntax", GONE),
    (D, "503 5.5.1 sequence", REJECTED),
    (D, "504 not implemented", REJECTED),
    (R, "521 5.3.2 takes no mail", GONE),
    (S, "521 takes no mail", CONFIG),
    (R, "556 5.1.10 null MX", GONE),
    (R, "556 takes no mail", GONE),
    (M, "530 5.7.0 authenticate first", CONFIG),
    (M, "530 5.5.1 Authentication Required", CONFIG),
    (S, "534 5.7.9 too weak", CONFIG),
    (S, "535 5.7.8 bad credentials", CONFIG),
    (S, "538 5.7.11 encrypt first", CONFIG),
    (S, "550 5.7.1 go away", CONFIG),
    (R, "550 5.1.1 no such user", GONE),
    (R, "550 5.1.2 no such domain", GONE),
    (R, "550 5.1.6 moved", GONE),
    (R, "550 5.1.10 null MX", GONE),
    (C, "550 5.1.1 no such user", GONE),
    (R, "550 5.2.1 disabled", GONE),
    (R, "554 5.2.1 disabled", GONE),
    (R, "552 5.2.2 over quota", WAIT),
    (R, "552 over quota", WAIT),
    (C, "552 5.3.4 too big", REJECTED),
    (M, "552 5.3.4 too big", REJECTED),
    (C, "552 5.2.3 too big", REJECTED),
    (C, "552 too big", REJECTED),
    (M, "550 5.1.7 bad sender", CONFIG),
    (M, "553 5.1.8 bad sender domain", CONFIG),
    (M, "550 who are you", CONFIG),
    (M, "553 5.7.1 not your address", CONFIG),
    (R, "550 5.7.1 policy", REJECTED),
    (C, "554 5.7.1 spam", REJECTED),
    (R, "550 relaying denied", REJECTED),
    (C, "550 5.7.20 DKIM", CONFIG),
    (C, "550 5.7.23 SPF", CONFIG),
    (C, "550 5.7.26 DMARC", CONFIG),
    (C, "550 5.7.27 null MX of the sender", CONFIG),
    (C, "550 5.7.515 Access denied, sending domain does not meet the level", CONFIG),
    (R, "553 5.6.7 SMTPUTF8 needed", REJECTED),
    (C, "554 5.0.0 no", REJECTED),
    (C, "554 5.6.0 content", REJECTED),
    (M, "555 5.5.4 parameter unknown", REJECTED),
    (R, "550 4.1.1 a class that contradicts itself", REJECTED),
    (R, "450 4.3.2 takes nothing now", HOLD),
    (C, "451 4.4.5 congested", HOLD),
    (R, "550 5.3.1 mail system full", LATER),
    (M, "550 5.3.5 not set up for this", CONFIG),
    (C, "550 5.7.0 policy", REJECTED),
    (M, "550 5.7.3 client was not authenticated", CONFIG),
    (M, "550 5.7.4 security feature missing", CONFIG),
    (M, "550 5.7.8 bad credentials", CONFIG),
    (M, "550 5.7.9 too weak", CONFIG),
    (M, "550 5.7.10 encrypt first", CONFIG),
    (M, "550 5.7.11 encrypt first", CONFIG),
    (M, "550 5.7.12 password expired", CONFIG),
    (M, "550 5.7.13 account disabled", CONFIG),
    (R, "550 5.7.14 trust relationship required", CONFIG),
    (R, "550 5.7.17 mailbox has another owner", GONE),
    (R, "550 5.7.18 domain has another owner", GONE),
    (C, "550 5.7.21 DKIM", CONFIG),
    (C, "550 5.7.22 DKIM", CONFIG),
    (C, "550 5.7.24 SPF", CONFIG),
    (C, "550 5.7.25 reverse DNS", CONFIG),
    (C, "550 5.7.28 mail flood", CONFIG),
]


def outcome(stage: Stage, line: str) -> Outcome:
    return ReplyJudge().refusal(Reply(int(line[:3]), (line[4:],)), stage)


def named(said: Outcome) -> str:
    match said:
        case Retry(scope=Scope.ACCOUNT):
            return HOLD
        case Retry(after=None):
            return LATER
        case Retry(after=after, scope=scope):
            assert (after, scope) == (timedelta(minutes=5), Scope.RECIPIENT)
            return WAIT
        case Gone():
            return GONE
        case Misconfigured():
            return CONFIG
        case _:
            assert isinstance(said, Rejected)
            return REJECTED


@pytest.mark.parametrize(("stage", "line", "meaning"), CASES)
def test_every_answer_of_the_table_has_its_meaning(stage: Stage, line: str, meaning: str) -> None:  # F17
    assert named(outcome(stage, line)) == meaning


def test_every_enhanced_code_that_we_know_has_a_case_in_which_it_decides() -> None:  # STYLE 5
    replies = [(stage, Reply(int(line[:3]), (line[4:],))) for stage, line, _ in CASES]
    decided = {reply.enhanced for stage, reply in replies if stage is not S and reply.code not in _BY_CODE}
    assert decided >= _BY_ENHANCED.keys()


@given(st.sampled_from(Stage), st.integers(400, 599), st.integers(0, 9), st.integers(0, 99), st.booleans())
def test_every_answer_there_can_be_has_a_meaning(stage: Stage, code: int, a: int, b: int, has_enhanced: bool) -> None:
    line = f"{code // 100}.{a}.{b} text" if has_enhanced else "text"
    kind = classify(Reply(code, (line,)), stage)
    transient = {"LATER", "WAIT", "HOLD"}
    assert (kind.name in transient) or code >= 500


def test_refusals_by_policy_in_a_row_are_ours_until_one_letter_is_taken() -> None:
    judge, blocked = ReplyJudge(), Reply(550, ("5.7.1 blocked",))
    kinds = [type(judge.refusal(blocked, Stage.RCPT)) for _ in range(5)]
    assert kinds == [Rejected] * 4 + [Misconfigured]
    judge.took()
    assert isinstance(judge.refusal(blocked, Stage.RCPT), Rejected)


def test_what_the_relay_says_is_kept_without_addresses() -> None:  # I12
    reply = Reply(550, ("5.1.1 <hanako@example.com>: unknown", "5.1.1 see hanako@example.com"))
    said = ReplyJudge().refusal(reply, Stage.RCPT)
    assert said == Gone("SMTP_550_5.1.1", "(address): unknown see (address)")


def test_replies_are_read_whole_and_in_their_order() -> None:
    buffer = bytearray(b"250-relay\r\n250-SIZE 10\r\n250 OK\r\n354 go\r\n2")
    assert take_reply(buffer) == Reply(250, ("relay", "SIZE 10", "OK"))
    assert take_reply(buffer) == Reply(354, ("go",))
    assert take_reply(buffer) is None and buffer == b"2"


@pytest.mark.parametrize("nonsense", [b"hello\r\n", b"250-a\r\n251 b\r\n", b"25\r\n", b"250_ok\r\n", b"x" * 70_000])
def test_what_is_no_reply_ends_the_conversation(nonsense: bytes) -> None:
    with pytest.raises(NonsenseError):
        take_reply(bytearray(nonsense))


def test_a_reply_of_three_digits_is_enough() -> None:
    assert take_reply(bytearray(b"250\r\n")) == Reply(250, ("",))


@pytest.mark.parametrize(
    ("line", "text"), [(b"250\n", ""), (b"250 \r\n", ""), (b"250 ok\r\r\n", "ok"), (b"250 o\rk\r\n", "o\rk")]
)
def test_a_reply_of_one_line_leaves_what_came_after_it(line: bytes, text: str) -> None:
    buffer = bytearray(line + b"354 go")
    assert take_reply(buffer) == Reply(250, (text,))
    assert buffer == b"354 go"
    assert take_reply(buffer) is None
