"""Decoding: query and path as they came in; checked structs and texts out, or a problem that names the field."""

from typing import TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from msgspec import Struct

from noroshi.domain.bodies import check_text, problem_of, shortened
from noroshi.domain.problems import ProblemError

LONGEST_NAME = 128
_QUERY_PARAMETERS_AT_MOST = 50

S = TypeVar("S", bound=Struct)


def decode_query(raw: bytes, kind: type[S]) -> S:
    """Query parameters, each at most once."""
    values: dict[str, str] = {}
    if raw:
        try:
            pairs = parse_qsl(
                raw.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_QUERY_PARAMETERS_AT_MOST,
            )
        except ValueError:
            raise ProblemError("bad_field", "The query string cannot be read.", field="query") from None
        for name, value in pairs:
            if name in values:
                raise ProblemError("bad_field", "The parameter stands there twice.", field=shortened(name))
            values[name] = value
    try:
        query = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise problem_of(error) from None
    check_text(query)
    return query


def decode_path_text(raw: str, field: str) -> str:
    """A name in the path, percent-decoded: 1 ... 128 characters."""
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise ProblemError("bad_field", "The text is not UTF-8.", field=field) from None
    if len(text) > LONGEST_NAME:
        raise ProblemError("bad_field", f"Expected at most {LONGEST_NAME} characters.", field=field)
    check_text(text, field)
    return text
