"""Outcomes: a relay's reply and the command it answers in, what that means for the letter or for the account out.

The enhanced code (RFC 3463) decides where there is one, since the code alone says too little: an address is given up
only upon an answer that speaks of the address.
"""

from datetime import timedelta
from enum import Enum, auto

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope
from noroshi.flow.send.email.smtp.replies import Reply

REFUSALS_TO_SUSPECT = 5
"""Policy refusals in a row, none taken between them, before the fault is ours and not one message's."""

_A_WHILE = timedelta(minutes=5)


class Stage(Enum):
    """What a reply answers: the session itself (greeting, EHLO, STARTTLS, AUTH), or a command of a letter."""

    SESSION = auto()
    MAIL = auto()
    RCPT = auto()
    DATA = auto()
    CONTENT = auto()


class Kind(Enum):
    """`LATER` concerns the letter and `HOLD` the account; `WAIT` is a mailbox that makes a letter wait some minutes.
    `POLICY` may be either's fault."""

    LATER = auto()
    WAIT = auto()
    HOLD = auto()
    GONE = auto()
    REJECTED = auto()
    POLICY = auto()
    CONFIG = auto()


_BY_CODE: dict[int, Kind] = {
    421: Kind.HOLD,  # closing the channel: shutting down, too many connections, too fast
    454: Kind.HOLD,  # TLS or authentication not available now; SES: rate or quota exceeded
    530: Kind.CONFIG,  # authentication or STARTTLS required
    534: Kind.CONFIG,  # the mechanism is too weak
    535: Kind.CONFIG,  # credentials refused
    538: Kind.CONFIG,  # the mechanism needs encryption
}
"""These mean the same whatever the enhanced code beside them."""

_BY_ENHANCED: dict[str, Kind] = {
    "4.2.2": Kind.WAIT,  # mailbox full
    "4.3.1": Kind.HOLD,  # the relay's storage is full
    "4.3.2": Kind.HOLD,  # the relay takes nothing now
    "4.4.5": Kind.HOLD,  # the relay is congested
    "4.7.28": Kind.HOLD,  # mail flood detected: Gmail's rate limit
    "5.1.1": Kind.GONE,  # no such mailbox
    "5.1.2": Kind.GONE,  # no such domain
    "5.1.3": Kind.GONE,  # an address that cannot be one
    "5.1.6": Kind.GONE,  # the mailbox has moved
    "5.1.7": Kind.CONFIG,  # the sender's address cannot be one
    "5.1.8": Kind.CONFIG,  # the sender's domain
    "5.1.10": Kind.GONE,  # null MX: the domain takes no mail (RFC 7505)
    "5.2.1": Kind.GONE,  # mailbox disabled
    "5.2.2": Kind.WAIT,  # mailbox full
    "5.3.1": Kind.LATER,  # the mail system is full
    "5.3.5": Kind.CONFIG,  # the relay is not set up for this
    "5.7.0": Kind.POLICY,
    "5.7.1": Kind.POLICY,  # policy, block list, content or relaying denied
    "5.7.3": Kind.CONFIG,  # Exchange: not authenticated
    "5.7.4": Kind.CONFIG,  # a security feature is missing
    "5.7.8": Kind.CONFIG,  # credentials invalid
    "5.7.9": Kind.CONFIG,  # the mechanism is too weak
    "5.7.10": Kind.CONFIG,  # encryption needed
    "5.7.11": Kind.CONFIG,  # encryption needed for the mechanism
    "5.7.12": Kind.CONFIG,  # the password has expired
    "5.7.13": Kind.CONFIG,  # our account is disabled
    "5.7.14": Kind.CONFIG,  # trust relationship required
    "5.7.17": Kind.GONE,  # the mailbox has another owner (RFC 7293)
    "5.7.18": Kind.GONE,  # the domain has another owner (RFC 7293)
    "5.7.28": Kind.CONFIG,  # mail flood detected
    "5.7.515": Kind.CONFIG,  # Microsoft: SPF, DKIM or DMARC
    **{f"5.7.{detail}": Kind.CONFIG for detail in range(20, 28)},  # DKIM, SPF, DMARC, reverse DNS, null MX (RFC 7372)
}


def classify(reply: Reply, stage: Stage) -> Kind:
    """For replies that say no."""
    if stage is Stage.SESSION:
        return Kind.HOLD if reply.code < 500 else Kind.CONFIG
    found = _BY_CODE.get(reply.code) or _BY_ENHANCED.get(reply.enhanced)
    if found is not None and not (found is Kind.POLICY and stage is Stage.MAIL):
        return found
    return _classify_transient(reply, stage) if 400 <= reply.code < 500 else _classify_permanent(reply, stage)


def _classify_transient(reply: Reply, stage: Stage) -> Kind:
    if stage is Stage.MAIL:
        return Kind.HOLD
    # Greylisting: 450 or 451 to RCPT, with 4.7.1, 4.2.0, 4.2.1 or nothing beside it.
    is_grey = stage is Stage.RCPT and (reply.code == 450 or reply.enhanced.startswith("4.7."))
    return Kind.WAIT if is_grey else Kind.LATER


def _classify_permanent(reply: Reply, stage: Stage) -> Kind:
    if reply.code in {521, 556} and stage is Stage.RCPT:  # RFC 7504: the host or the domain takes no mail
        return Kind.GONE
    if reply.code == 552 and not reply.enhanced and stage is Stage.RCPT:  # over quota, in the words of RFC 5321
        return Kind.WAIT
    if stage is Stage.MAIL and (reply.code in {550, 553, 554}):  # it is the sender that is refused
        return Kind.REJECTED if reply.enhanced[2:3] in set("356") else Kind.CONFIG
    if reply.code in {550, 551, 553, 554} and (not reply.enhanced or reply.enhanced.startswith("5.7.")):
        return Kind.POLICY
    return Kind.REJECTED


def code_of(reply: Reply) -> str:
    """`SMTP_550_5.1.1`: what dead letters are filtered by."""
    return f"SMTP_{reply.code}_{reply.enhanced}" if reply.enhanced else f"SMTP_{reply.code}"


class ReplyJudge:
    """Turns refusals into outcomes, and remembers refusals by policy: one is the message's, many in a row are ours
    (block-listed, relaying denied), and stopping beats dead-lettering everybody's mail."""

    def __init__(self) -> None:
        self._refusals = 0

    def took(self) -> None:
        self._refusals = 0

    def refusal(self, reply: Reply, stage: Stage) -> Outcome:
        kind = classify(reply, stage)
        if kind is Kind.POLICY:
            self._refusals += 1
            kind = Kind.CONFIG if self._refusals >= REFUSALS_TO_SUSPECT else Kind.REJECTED
        return _outcome(kind, code_of(reply), reply.text)


def _outcome(kind: Kind, code: str, text: str) -> Outcome:
    match kind:
        case Kind.HOLD:
            return Retry(code, text, scope=Scope.ACCOUNT)
        case Kind.WAIT:
            return Retry(code, text, _A_WHILE, Scope.RECIPIENT)
        case Kind.LATER:
            return Retry(code, text)
        case Kind.GONE:
            return Gone(code, text)
        case Kind.CONFIG:
            return Misconfigured(code, text)
        case _:
            return Rejected(code, text)


def is_account_wide(outcome: Outcome) -> bool:
    """Whether sending more now would only be refused the same way."""
    return isinstance(outcome, Misconfigured) or (isinstance(outcome, Retry) and outcome.scope is Scope.ACCOUNT)
