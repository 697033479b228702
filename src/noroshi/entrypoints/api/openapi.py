"""The OpenAPI document: the table of routes in, a description that every answer keeps to out."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

import noroshi
from noroshi.domain.attachments import MAX_ATTACHMENTS
from noroshi.domain.problems import PROBLEMS
from noroshi.entrypoints.api.answers import PROBLEM_JSON, Problem
from noroshi.entrypoints.api.calls import JSON, NoQuery, RawBody, Row

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"\{(\w+)\}")
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"}
_NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
_PATH_SCHEMAS: dict[str, Schema] = {
    "batch_id": {"type": "string", "format": "uuid"},
    "notification_id": {"type": "string", "format": "uuid"},
    "request_id": {"type": "string", "format": "uuid"},
    "user_id": _NAME,
    "template_id": _NAME,
    "token_id": _NUMBER,
    "dead_letter_id": _NUMBER,
    "entry_id": _NUMBER,
    "pause_id": _NUMBER,
    "caught_id": _NUMBER,
    "position": {"type": "integer", "minimum": 0, "maximum": MAX_ATTACHMENTS - 1},
    "account": _NAME,
    "customer_id": _NAME,
    "farm_id": _NUMBER,
    "job_id": _NUMBER,
    "reservation_id": _NUMBER,
}
_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key within 24 h gives 409 with the first answer; must equal `idempotency_key`, if given.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}
_COME_BACK = frozenset({429, 503})
_RETRY_AFTER: Schema = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}


def problem_codes(row: Row) -> list[str]:
    """Every code the row may answer with: those its shape implies, and its own."""
    codes = ["internal", *row.problems]
    if row.scope is not None:
        codes += ["unauthorized", "forbidden", "too_many_requests", "bad_field", "unknown_field", "store_unavailable"]
    if row.body is not None:
        codes += ["bad_json", "too_large"]
    if "{" in row.path:
        codes += ["not_found", "bad_field"]
    return sorted(set(codes), key=lambda code: (PROBLEMS[code].status, code))


def describe(rows: Sequence[Row]) -> Schema:
    """The document, OpenAPI 3.1."""
    kinds = [Problem, *(kind for row in rows for kind in (row.answer, row.body) if _has_schema(kind))]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    by_kind = dict(zip((str(kind) for kind in kinds), schemas, strict=True))
    paths: dict[str, Schema] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Noroshi",
            "version": noroshi.__version__,
            "description": "One API to tell people things on every channel. Lists take `limit` and `cursor` and answer "
            "`items` and `next_cursor`. Errors are problem+json with a stable `code`. Control characters are refused "
            "everywhere; tabs and line breaks are allowed in the values of `data` and in the text of templates.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "nrs_..."}},
        },
    }


def _operation(row: Row, by_kind: dict[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": row.name,
        "summary": row.summary,
        "parameters": list(_parameters(row)),
        "responses": {str(row.status): _success(row, by_kind), **_problems(row, by_kind)},
        "security": [],
    }
    if row.scope is not None:
        link = ", or the signed link's `token`" if row.takes_link else ""
        operation["description"] = f"Needs a key with the scope `{row.scope}` or `admin`{link}."
        operation["security"] = [{"key": []}, {}] if row.takes_link else [{"key": []}]
    if row.body is RawBody:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": {}}}}
    elif row.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": by_kind[str(row.body)]}}}
    return operation


def _parameters(row: Row) -> Iterable[Schema]:
    for name in _VARIABLE.findall(row.path):
        yield {"name": name, "in": "path", "required": True, "schema": _PATH_SCHEMAS[name]}
    if row.query is not NoQuery:
        yield from _query_parameters(row.query)
    if row.takes_idempotency_key:
        yield _IDEMPOTENCY_KEY


def _query_parameters(query: type[Struct]) -> Iterable[Schema]:
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    for name, wanted in schema["properties"].items():
        # A parameter is there or not; it cannot be null.
        schemas = [kind for kind in wanted.get("anyOf", [wanted]) if kind.get("type") != "null"]
        yield {"name": name, "in": "query", "required": name in schema["required"], "schema": schemas[0]}


def _success(row: Row, by_kind: dict[str, Schema]) -> Schema:
    if row.answer is None:
        return {"description": "Done."}
    content = {"schema": by_kind.get(str(row.answer), {"type": "object"})}
    return {
        "description": row.summary,
        "content": {row.media.split(";")[0]: {"schema": {"type": "string"}} if row.answer is bytes else content},
    }


def _problems(row: Row, by_kind: dict[str, Schema]) -> Schema:
    by_status: dict[int, list[str]] = {}
    for code in problem_codes(row):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {
        str(status): {
            "description": " ".join(f"`{code}`: {PROBLEMS[code].title}" for code in codes),
            "headers": _RETRY_AFTER if status in _COME_BACK else {},
            "content": {
                PROBLEM_JSON: {"schema": {"allOf": [by_kind[str(Problem)], {"properties": {"code": {"enum": codes}}}]}}
            },
        }
        for status, codes in by_status.items()
    }


def _has_schema(kind: Any) -> bool:
    return kind is not None and kind not in (bytes, RawBody) and kind != dict[str, Any]
