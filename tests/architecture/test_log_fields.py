"""A log line keeps only fields of the allow-list (I12): whoever logs another one would write it in vain."""

import ast
from pathlib import Path

from noroshi.machine.logs import ALLOWED_FIELDS

SOURCE = Path(__file__).parents[2] / "src" / "noroshi"
LEVELS = {"debug", "info", "warning", "error"}


def _logged_fields() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                owner = ast.unparse(node.func.value)
                if "log" in owner:
                    found.update({word.arg: str(path) for word in node.keywords if word.arg})
    return found


def test_every_field_that_is_logged_is_allowed() -> None:
    fields = _logged_fields()
    assert fields, "the walk finds no log lines: it is broken"
    assert {name: where for name, where in fields.items() if name not in ALLOWED_FIELDS} == {}
