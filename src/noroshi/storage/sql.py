"""The SQL of a store: `.sql` files in, named queries and numbered migrations out.

A query begins with `-- name: its_name`; the comment line after it says what it is for.
"""

from importlib.resources import files

_MARK = "-- name: "


def _parse(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        found[name.strip()] = "\n".join(lines).strip().rstrip(";")
    return found


def load_queries(package: str) -> dict[str, str]:
    """Every query of the store in this package, by its name."""
    queries: dict[str, str] = {}
    for entry in sorted(files(package).joinpath("queries").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".sql"):
            more = _parse(entry.read_text(encoding="utf-8"))
            if twice := queries.keys() & more.keys():
                raise ValueError(f"{entry.name} has queries that another file has, too: {sorted(twice)}")
            queries.update(more)
    return queries


def load_migrations(package: str) -> list[tuple[int, str, str]]:
    """(number, name, script), in order."""
    scripts: list[tuple[int, str, str]] = []
    for entry in files(package).joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            scripts.append((int(number), name, entry.read_text(encoding="utf-8")))
    return sorted(scripts)
