"""The product's source goes in; every crash point in it, and every commit or send that has none, comes out."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import noroshi

SOURCE = Path(noroshi.__file__).parent
EDGES = ("before", "after")
STAND_IN = "ledger"
"""The account through which the sweep sends: all accounts pass the same lines."""

_HOLE = "{}"


class UnreadableError(ValueError):
    """A crash point whose name cannot be read from the source: write it so that it can."""


def crash_points(source: Path = SOURCE, without: Sequence[str] = ()) -> set[str]:
    """Every name that can be reached, as NOROSHI_CRASH_AT takes it; `without` are folders to pass by."""
    passed = [source / folder for folder in without]
    paths = [path for path in sorted(source.rglob("*.py")) if not any(map(path.is_relative_to, passed))]
    modules = [_parse(path) for path in paths]
    turns = {name for module in modules for name in _turns(module)}
    forms = {form for module in modules for form in _forms(module)}
    fillings = {"commit": turns, "send": {STAND_IN}}
    return {
        form.replace(_HOLE, filling)
        for form in forms
        for filling in (fillings[form.partition(".")[0]] if _HOLE in form else {""})
    }


def unguarded(source: Path = SOURCE) -> set[str]:
    """`file:function` of every commit, and every file with a send, without a crash point before and after it."""
    found: set[str] = set()
    for path in sorted(source.rglob("*.py")):
        module, name = _parse(path), path.relative_to(source).as_posix()
        found |= {f"{name}:{f.name}" for f in _functions(module) if _commits(f) and _edges(f) != set(EDGES)}
        if any(_is_send(call) for call in _calls(module)) and _edges(module) != set(EDGES):
            found.add(name)
    return found


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _calls(tree: ast.AST, method: str | None = None) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and method in (None, node.func.attr):
            yield node


def _commits(function: ast.AST) -> bool:
    """Whether it ends a transaction: by SQL, or by leaving apsw's `with connection` or asyncpg's `async with
    connection.transaction()`."""
    by_sql = any(
        isinstance(arg, ast.Constant) and str(arg.value).upper().startswith(("COMMIT", "END"))
        for call in _calls(function, "execute")
        for arg in call.args[:1]
    )
    blocks = (
        ast.unparse(item.context_expr)
        for node in ast.walk(function)
        if isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items
    )
    return by_sql or any(block.endswith(("connection", ".transaction()")) for block in blocks)


def _is_send(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "send" and "channel" in ast.unparse(call.func)


def _edges(tree: ast.AST) -> set[str]:
    return {form.rpartition(".")[2] for form in _forms(tree)}


def _forms(tree: ast.AST) -> set[str]:
    """What the reached names look like, `{}` standing for what is filled in."""
    attributes = {
        target.attr: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    return {_form(call.args[0], attributes) for call in _calls(tree, "reach") if call.args}


def _form(name: ast.expr, attributes: dict[str, ast.expr]) -> str:
    match name:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else _HOLE for part in parts)
        case ast.Attribute(attr=attribute) if attribute in attributes:
            return _form(attributes[attribute], attributes)
    raise UnreadableError(f"line {name.lineno}: {ast.unparse(name)}")


def _turns(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for function in _functions(module):
        for call in _calls(function, "turn"):
            if ast.unparse(call.func).endswith(("writer.turn", "turns.turn")):
                names |= _texts(call.args[0], function)
    return names


def _texts(name: ast.expr, function: ast.AST) -> set[str]:
    """The constants that a turn's name can be."""
    match name:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, function) | _texts(other, function)
        case ast.Name(id=variable):
            values = [
                node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == variable for target in node.targets)
            ]
            if values:
                return {text for value in values for text in _texts(value, function)}
    raise UnreadableError(f"line {name.lineno}: {ast.unparse(name)}")
