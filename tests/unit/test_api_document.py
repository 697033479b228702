"""The application keeps to its own OpenAPI document, whatever is sent to it (a short run; the gate has a long one)."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.unit.api_stub import KEYS, StubDesk

from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]

schema = schemathesis.openapi.from_asgi("/openapi.json", build_app(StubDesk()))
schema.config.generation.update(modes=list(schemathesis.GenerationMode))


@schema.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_documented(case: schemathesis.Case[Any]) -> None:
    headers = {"Authorization": f"Bearer {KEYS[KeyScope.ADMIN]}"}
    case.call_and_validate(headers=headers, checks=CHECKS)
