"""A session with a relay: the letters of a bundle in, each handed over and answered, pipelined where it may be."""

from noroshi.domain.outcomes import Outcome, Rejected, Sent
from noroshi.flow.send.email.smtp.bundle import Bundle
from noroshi.flow.send.email.smtp.outcomes import ReplyJudge, Stage, is_account_wide
from noroshi.flow.send.email.smtp.payload import Letter
from noroshi.flow.send.email.smtp.replies import CLOSING, GO_AHEAD, Reply
from noroshi.flow.send.email.smtp.wire import BrokenError, Wire

_RESET = b"RSET\r\n"
_EMPTY_CONTENT = b".\r\n"
_STAGES = (Stage.MAIL, Stage.RCPT, Stage.DATA)


class GoodbyeError(Exception):
    """The relay closes the session (421); `outcome` is what it said to the letter it would not begin."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


class Session:
    """One round trip a letter: its content and the next letter's MAIL, RCPT and DATA leave together (RFC 2920). Of one
    connection no more than one letter is ever in doubt, which is why the content itself is not pipelined (CHUNKING).

    `finished` counts the letters that got an answer; `underway` are those that have begun and got none yet.
    """

    def __init__(
        self, wire: Wire, judge: ReplyJudge, sender: bytes, abilities: frozenset[str], size_limit: int | None
    ) -> None:
        self._wire = wire
        self._judge = judge
        self._sender = sender
        self._has_size = "SIZE" in abilities
        self._has_utf8 = {"SMTPUTF8", "8BITMIME"} <= abilities
        self._is_pipelined = "PIPELINING" in abilities
        self._size_limit = size_limit
        self.finished = 0
        self.underway: list[Letter] = []
        self.idle_since = 0.0

    @property
    def is_usable(self) -> bool:
        return self._wire.is_quiet

    def quit(self) -> None:
        """The answer is not waited for."""
        self._wire.write(b"QUIT\r\n")
        self._wire.close()

    def abort(self) -> None:
        self._wire.abort()

    async def carry(self, bundle: Bundle) -> None:
        """Until nothing is left to begin. Raises BrokenError or GoodbyeError with `underway` as it stands."""
        letter = self._begin(bundle, b"")
        while letter is not None:
            refusal = await self._open_letter(letter)
            if refusal is None:
                following = self._begin(bundle, await self._hand_over(letter))
                await self._end(letter, bundle)
            else:
                self._settle(letter, refusal, bundle)
                following = self._begin(bundle, _RESET)
                await self._wire.reply()
            letter = following

    def _begin(self, bundle: Bundle, before: bytes) -> Letter | None:
        """Writes what goes before, and takes and announces the next letter in the same breath."""
        letter = bundle.take(is_first=not before)
        while letter is not None and (refusal := self._unfit(letter)) is not None:
            bundle.answer(letter, refusal)
            letter = bundle.take(is_first=not before)
        if letter is not None:
            self.underway.append(letter)
            if self._is_pipelined:
                before += b"".join(self._opening(letter))
        if before:
            self._wire.write(before)
        return letter

    def _unfit(self, letter: Letter) -> Outcome | None:
        """What this relay cannot take, known without asking it."""
        if letter.needs_utf8 and not self._has_utf8:
            return Rejected("SMTPUTF8_MISSING", "the relay takes no addresses outside ASCII")
        if self._size_limit is not None and letter.size > self._size_limit:
            return Rejected("MESSAGE_TOO_BIG", f"{letter.size} bytes; the relay takes {self._size_limit}")
        return None

    def _opening(self, letter: Letter) -> tuple[bytes, bytes, bytes]:
        size = b" SIZE=%d" % letter.size if self._has_size else b""
        utf8 = b" BODY=8BITMIME SMTPUTF8" if letter.needs_utf8 else b""
        return (
            b"MAIL FROM:<%b>%b%b\r\n" % (self._sender, size, utf8),
            b"RCPT TO:<%b>\r\n" % letter.recipient,
            b"DATA\r\n",
        )

    async def _open_letter(self, letter: Letter) -> Outcome | None:
        """None if the relay waits for the content, else why it does not want the letter."""
        refusal: Outcome | None = None
        code = 0
        commands = () if self._is_pipelined else self._opening(letter)  # else they have left already
        for number, stage in enumerate(_STAGES):
            if commands:
                if refusal is not None:
                    return refusal
                self._wire.write(commands[number])
            reply = await self._wire.reply()
            code = reply.code
            is_yes = code == GO_AHEAD if stage is Stage.DATA else reply.is_positive
            if not is_yes and refusal is None:
                refusal = self._refusal(reply, stage)
            if code == CLOSING:
                raise GoodbyeError(refusal or self._refusal(reply, stage))
        if refusal is not None and code == GO_AHEAD:  # it wants content for nobody: RFC 2920 3.1
            await self._wire.ask(_EMPTY_CONTENT)
        return refusal

    async def _hand_over(self, letter: Letter) -> bytes:
        """Writes the content but for its last piece, which is answered: it leaves with the next letter's commands."""
        *long, last = letter.pieces
        for piece in long:
            await self._wire.push(piece)
        letter.is_out = not self._wire.is_over
        return last

    async def _end(self, letter: Letter, bundle: Bundle) -> None:
        reply = await self._wire.reply()
        if reply.is_positive:
            self._judge.took()
            self._settle(letter, Sent(letter.message_id), bundle)
            return
        outcome = self._refusal(reply, Stage.CONTENT)
        self._settle(letter, outcome, bundle)
        if reply.code == CLOSING:
            raise GoodbyeError(outcome)

    def _refusal(self, reply: Reply, stage: Stage) -> Outcome:
        if reply.code < 400:
            raise BrokenError("an answer to another question")
        return self._judge.refusal(reply, stage)

    def _settle(self, letter: Letter, outcome: Outcome, bundle: Bundle) -> None:
        self.finished += 1
        self.underway.remove(letter)
        bundle.answer(letter, outcome)
        if is_account_wide(outcome):
            bundle.obstacle = outcome
