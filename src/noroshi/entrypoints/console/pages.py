"""Pages: a name and what to show in, HTML with every value escaped out."""

from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from minijinja import Environment, pass_state, safe

from noroshi.entrypoints.console import words

_HERE = Path(__file__).parent
_MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Pages:
    """Our own templates, from the package: whoever wrote them is trusted, whatever they show is not."""

    def __init__(self) -> None:
        self.assets = {path.name: (path.read_bytes(), _MEDIA[path.suffix]) for path in (_HERE / "assets").iterdir()}
        # In the path, so that modules find each other beside themselves and no browser keeps an old one.
        self.edition = sha256(b"".join(body for _, (body, _) in sorted(self.assets.items()))).hexdigest()[:12]
        self._environment = Environment(
            loader=_load,
            undefined_behavior="strict",
            debug=False,
            trim_blocks=True,
            lstrip_blocks=True,
            filters={
                "when": _when,
                "pretty": _pretty,
                "gap": words.gap,
                "details": words.details,
                "initial": words.initial,
                "sentence": _sentence,
                "iso": _iso,
                "thousands": _thousands,
            },
            globals={
                "assets": f"/console/assets/{self.edition}",
                "pills": msgspec.to_builtins(words.PILLS),
                "channel_names": words.CHANNEL_NAMES,
                "tones": words.TONES,
            },
        )

    def render(self, name: str, context: dict[str, Any]) -> str:
        text: str = self._environment.render_template(name, **context)
        return text


def _load(name: str) -> str:
    return (_HERE / "html" / name).read_text(encoding="utf-8")


@pass_state
def _when(state: Any, then: datetime, zone: str | None = None) -> Any:
    return safe(words.time_tag(then, state.lookup("now"), zone))


def _pretty(value: Any) -> str:
    """For people to read and change; escaped like any other text."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _thousands(number: int) -> str:
    return f"{number:,}"


def _sentence(text: str) -> str:
    """Begins with a capital; what follows stays as it is."""
    return text[:1].upper() + text[1:]


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
