"""The page that `type` of every problem links to: the table of problems in, one HTML page with an anchor a code out."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape

from noroshi.domain.problems import PROBLEMS, ProblemKind
from noroshi.entrypoints.api.calls import Call, NoQuery
from noroshi.entrypoints.api.desk import Desk

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 44rem; margin: 2.5rem auto; padding: 0 1.25rem; line-height: 1.55;
  font-family: system-ui, "Noto Sans", "Noto Sans JP", sans-serif; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em; }
section { padding: .6rem 1rem; border-left: 3px solid transparent; scroll-margin-top: 1rem; }
section:target { border-left-color: #c8511b; background: #c8511b1a; }
h1 { font-size: 1.5rem; padding: 0 1rem; }
h2 { font-size: 1.05rem; margin: 0; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover, h2 a:focus-visible { text-decoration: underline; }
h2 small { font-weight: normal; opacity: .7; margin-left: .5rem; }
p { margin: .2rem 0 0; }
body > p { padding: 0 1rem; margin-bottom: 1.2rem; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors · Noroshi</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>Errors</h1>
<p>Every error has one of these codes in <code>code</code>; rely on it rather than on a text. <code>detail</code> says
what was wrong this time, <code>request_id</code> finds it in the log.</p>
{sections}
</body>
</html>
"""

_SECTION = """<section id="{code}">
<h2><a href="#{code}"><code>{code}</code></a><small>{status}</small></h2>
<p>{title} {todo}</p>
</section>"""

_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"cache-control", b"public, max-age=300"),
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
)

_QUOTED = re.compile(r"`([^`]+)`")


async def show_errors(_desk: Desk, _call: Call[NoQuery, None]) -> bytes:
    return _page()


@cache
def _page() -> bytes:
    return _PAGE.format(style=_STYLE, sections="\n".join(map(_section, PROBLEMS.values()))).encode()


def _section(kind: ProblemKind) -> str:
    return _SECTION.format(code=kind.code, status=kind.status, title=_shown(kind.title), todo=_shown(kind.todo))


def _shown(text: str) -> str:
    return _QUOTED.sub(r"<code>\1</code>", escape(text, quote=False))
