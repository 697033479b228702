"""The source of a template goes in; the first thing it may not use comes out, with its line.

minijinja notices an unknown filter only when it reaches it, so the source is read here when a template is stored.
It must already have been compiled: what is no template at all is not this module's business.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from noroshi.machine.rendering.allowed import FILTERS, FUNCTIONS, LOOP_METHODS, SIGN_TESTS, STATEMENTS, TESTS

_OPENING = re.compile(r"\{\{|\{%|\{#")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<name>[^\W\d]\w*)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<number>\d\w*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"{{": "}}", "{%": "%}"}
_OPERATORS = frozenset({"and", "else", "elif", "for", "if", "in", "is", "not", "or", "recursive", "set", "with"})
_NAMES_A_FILTER = frozenset({"map"})
_NAMES_A_TEST = frozenset({"reject", "select"})


class Token(NamedTuple):
    """`kind` is name, text, number or sign."""

    kind: str
    text: str
    at: int


class Fault(NamedTuple):
    line: int
    problem: str


class _FaultError(Exception):
    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


def find_fault(source: str) -> Fault | None:
    """The first statement, filter, test or call in `source` that is not allowed."""
    blocks = list(_blocks(source))
    callable_names = FUNCTIONS.union(*(_defined_by(is_statement, tokens) for is_statement, tokens in blocks))
    try:
        for is_statement, tokens in blocks:
            if is_statement:
                _check_statement(tokens)
            _check_tokens(tokens, callable_names)
    except _FaultError as found:
        return Fault(source.count("\n", 0, found.at) + 1, found.problem)
    return None


def _blocks(source: str) -> Iterator[tuple[bool, list[Token]]]:
    """(is it a statement?, its tokens) of every block that is code; comments and raw text are left out."""
    at = 0
    while (opening := _OPENING.search(source, at)) is not None:
        if opening[0] == "{#":
            end = source.find("#}", opening.end())
            at = len(source) if end < 0 else end + 2
            continue
        tokens, at = _tokens(source, opening.end(), _CLOSING[opening[0]])
        if opening[0] == "{%" and tokens and tokens[0].text == "raw":
            end_of_raw = _END_OF_RAW.search(source, at)
            at = len(source) if end_of_raw is None else end_of_raw.end()
            continue
        yield opening[0] == "{%", tokens


def _tokens(source: str, at: int, closing: str) -> tuple[list[Token], int]:
    """The tokens up to `closing`, and the place after it. Braces of a map literal do not close a block."""
    tokens: list[Token] = []
    braces = 0
    while at < len(source) and (braces or not source.startswith(closing, at)):
        found = _TOKEN.match(source, at)
        assert found is not None  # noqa: S101 - `sign` matches any character
        kind = str(found.lastgroup)
        if kind != "space":
            tokens.append(Token(kind, found[0], at))
        if kind == "sign":
            braces = max(0, braces + (found[0] == "{") - (found[0] == "}"))
        at = found.end()
    while tokens and tokens[-1].text in "-+":
        tokens.pop()
    if tokens and tokens[0].text in "-+" and closing == "%}":
        tokens.pop(0)
    return tokens, at + len(closing)


def _defined_by(is_statement: bool, tokens: list[Token]) -> set[str]:  # noqa: FBT001 - a pair from _blocks
    """The name of the macro that a statement defines: it may be called."""
    is_macro = is_statement and len(tokens) > 1 and tokens[0].text == "macro"
    return {tokens[1].text} if is_macro else set()


def _check_statement(tokens: list[Token]) -> None:
    if not tokens:
        return
    name = tokens[0]
    if name.text not in STATEMENTS:
        raise _FaultError(name.at, f"the statement `{name.text}` is not allowed")
    if name.text == "filter" and len(tokens) > 1:
        _check_name("filter", tokens[1], FILTERS)


def _check_tokens(tokens: list[Token], callable_names: frozenset[str]) -> None:
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        if before is not None and before.text == "|":
            _check_name("filter", token, FILTERS)
            _check_named_argument(tokens, number)
        elif _is_test(tokens, number):
            _check_name("test", token, TESTS)
        elif token.text == "(" and before is not None:
            _check_call(tokens, number, callable_names)


def _is_test(tokens: list[Token], number: int) -> bool:
    """Whether the token stands after `is` or `is not`, and `is` is no attribute's name."""
    at = number - 1
    if at > 0 and tokens[at].text == "not":
        at -= 1
    follows_is = at >= 0 and tokens[at].text == "is" and tokens[number].text != "not"
    return follows_is and (at == 0 or tokens[at - 1].text != ".")


def _check_name(what: str, token: Token, allowed: frozenset[str]) -> None:
    if token.text not in allowed:
        raise _FaultError(token.at, f"the {what} `{token.text}` is not allowed")


def _check_named_argument(tokens: list[Token], number: int) -> None:
    """map("name"), select("name") and reject("name") take a filter or a test by its name."""
    if len(tokens) < number + 3 or tokens[number + 1].text != "(" or tokens[number + 2].kind != "text":
        return
    named = tokens[number + 2]._replace(text=tokens[number + 2].text[1:-1])
    if tokens[number].text in _NAMES_A_FILTER:
        _check_name("filter", named, FILTERS)
    elif tokens[number].text in _NAMES_A_TEST:
        _check_name("test", named, TESTS | SIGN_TESTS)


def _check_call(tokens: list[Token], number: int, callable_names: frozenset[str]) -> None:
    """`number` is an opening parenthesis that is not the first token: a call, or one that only groups."""
    callee = tokens[number - 1]
    if callee.kind == "sign" and callee.text not in ")]}":
        return
    if callee.kind != "name":
        raise _FaultError(callee.at, "only a function that is named may be called")
    before = tokens[number - 2] if number > 1 else None
    if before is not None and before.text == ".":
        is_loop = number > 2 and tokens[number - 3].text == "loop"
        if not (is_loop and callee.text in LOOP_METHODS):
            raise _FaultError(callee.at, f"the method `{callee.text}` cannot be called; use a filter")
        return
    is_filter = before is not None and (before.text == "|" or before.text == "filter")
    if not (is_filter or _is_test(tokens, number - 1) or callee.text in _OPERATORS or callee.text in callable_names):
        raise _FaultError(callee.at, f"the function `{callee.text}` is not allowed")
