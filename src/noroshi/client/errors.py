"""NoroshiError: an answer that is a problem in, one exception that says what is wrong and what to do out."""

from typing import Any

import msgspec

UNREACHABLE = "unreachable"
"""The code of a call to which nobody answered."""


class NoroshiError(Exception):
    """What the API refused, and why: `code` is stable and documented in docs/errors.md, `todo` says what to do, `field`
    names what was wrong. `status` is 0 and `code` is `unreachable` where nobody answered. `members` has all that the
    answer said."""

    def __init__(
        self,
        code: str,
        detail: str,
        todo: str,
        *,
        status: int = 0,
        field: str | None = None,
        retry_after: int | None = None,
        members: dict[str, Any] | None = None,
    ) -> None:
        where = f" ({field})" if field else ""
        super().__init__(f"{code}{where}: {detail} {todo}")
        self.code = code
        self.detail = detail
        self.todo = todo
        self.status = status
        self.field = field
        self.retry_after = retry_after
        self.members = members or {}


def unreachable(url: str, why: str) -> NoroshiError:
    return NoroshiError(UNREACHABLE, f"Nobody answers at {url} ({why}).", "Start the server, or ask another one.")


def error_of(status: int, headers: dict[str, str], body: bytes) -> NoroshiError:
    """The error that an answer of 400 or more stands for, also if it is not one of ours."""
    try:
        members = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        members = {}
    after = headers.get("retry-after", "")
    return NoroshiError(
        str(members.get("code", "strange_answer")),
        str(members.get("detail", f"The answer was {status}, and not one of Noroshi's.")),
        str(members.get("todo", "Look at what stands between you and the server.")),
        status=status,
        field=members.get("field"),
        retry_after=int(after) if after.isdecimal() else None,
        members=members,
    )
