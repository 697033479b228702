"""The letters of one call: each is taken, maybe put back, and answered once; their outcomes come out in order."""

from collections import deque
from collections.abc import Callable, Sequence

from noroshi.domain.outcomes import Outcome, Rejected, Retry, Scope, Unknown
from noroshi.flow.send.email.smtp.payload import Letter

TIMEOUT = "TIMEOUT"

_NOT_BEGUN = Retry(TIMEOUT, "the relay was too slow: not begun in time", scope=Scope.ACCOUNT)
_IN_DOUBT = Unknown(TIMEOUT, "the relay did not answer the content in time")


class Bundle:
    """Shared by the connections that carry it. `obstacle`, once set, is why nothing more of it is begun; `excuse` is
    why a connection carries no more of it, though another may."""

    def __init__(self, letters: Sequence[Letter | Rejected], may_go_on: Callable[[], bool]) -> None:
        self._waiting = deque(one for one in letters if isinstance(one, Letter))
        self._letters = letters
        self._outcomes: list[Outcome | None] = [one if isinstance(one, Rejected) else None for one in letters]
        self._may_go_on = may_go_on
        self.obstacle: Outcome | None = None
        self.excuse: Outcome = _NOT_BEGUN

    @property
    def left(self) -> int:
        """How many are still to be begun."""
        return 0 if self.obstacle is not None else len(self._waiting)

    def take(self, *, is_first: bool) -> Letter | None:
        """The next letter; None if there is none, or (but for the first) if somebody more urgent wants to go on."""
        if not self.left or not (is_first or self._may_go_on()):
            return None
        return self._waiting.popleft()

    def put_back(self, letter: Letter) -> None:
        self._waiting.appendleft(letter)

    def answer(self, letter: Letter, outcome: Outcome) -> None:
        self._outcomes[letter.place] = outcome

    def outcomes(self) -> list[Outcome]:
        """What is left without an answer was in doubt if any of it went out, else not begun."""
        not_begun = self.obstacle or self.excuse
        return [
            outcome or (_IN_DOUBT if isinstance(letter, Letter) and letter.is_out else not_begun)
            for outcome, letter in zip(self._outcomes, self._letters, strict=True)
        ]
