"""Refusals: what the console itself says no to, in the form in which the API does."""

from noroshi.client import NoroshiError
from noroshi.domain.problems import ProblemError


def refusal(
    status: int, code: str, title: str, todo: str, *, detail: str = "", field: str | None = None
) -> NoroshiError:
    return NoroshiError(code, detail, todo, status=status, field=field, members={"title": title})


def foreign() -> NoroshiError:
    return refusal(
        403,
        "foreign",
        "This form was not sent from this console.",
        "Open the page again and repeat what you did.",
        detail="The browser names another site as its sender, or the page is from an earlier visit.",
    )


def nowhere() -> NoroshiError:
    return refusal(404, "not_found", "There is no such page.", "Check the address, or begin at Activity.")


def broken() -> NoroshiError:
    return refusal(
        500,
        "internal",
        "Something broke on our side.",
        "Try again; if it stays, report it.",
        detail="The error is in the server's log.",
    )


def of_problem(problem: ProblemError) -> NoroshiError:
    kind, wait = problem.kind, problem.retry_after
    return NoroshiError(
        kind.code,
        problem.detail,
        kind.todo,
        status=kind.status,
        retry_after=None if wait is None else int(wait.total_seconds()) + 1,
        members={"title": kind.title},
    )
