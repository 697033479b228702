"""Why a request was not enqueued; in every case nothing was written."""

from noroshi.domain.problems import ProblemError


class BadRequestError(ValueError):
    """A field is wrong. `code` and `detail` are those of the API's problem, `field` names what to correct."""

    def __init__(self, code: str, detail: str, field: str) -> None:
        super().__init__(code, detail, field)  # all of them, so that it can be pickled
        self.code = code
        self.detail = detail
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}"


class UnsafeConnectionError(RuntimeError):
    """The connection could spoil the store; the text says what to set."""


class NoStoreError(RuntimeError):
    """The connection leads to a database without Noroshi's tables, or with those of an older version."""


def bad_request(problem: ProblemError) -> BadRequestError:
    return BadRequestError(problem.kind.code, problem.detail, problem.field or "$")
