"""The chart: published rows in; an SVG with a bar for every judged ratio, by store, its bar and its aim marked, out.

Ratios are of very different sizes, so each is drawn against its own aim: the aims stand in one line. The picture has
a ground of its own and follows the reader's wish for light or dark.
"""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from bench.figures import Judged, Row
from bench.table import Taken, by_store

_WIDTH, _MARGIN = 800, 24
_TRACK = _WIDTH - 2 * _MARGIN
_MOST = 1.5
"""What is further beyond its aim is cut off there, and says so."""
_TOP, _GROUP, _ROW = 84, 40, 60
_THICK = 14

_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.title { font-size: 18px; font-weight: 600 } .group { font-size: 15px; font-weight: 600 }
.quiet { font-size: 11px; fill: #59636e } .end { text-anchor: end }
.ground { fill: #ffffff } .track { fill: #eef0f3 } .mark { stroke: #1f2328; stroke-width: 2 }
.aim { stroke-dasharray: 3 2 }
.aim-met { fill: #2da44e } .bar-met { fill: #4493f8 } .missed { fill: #e5534b } .refused { fill: #afb8c1 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .quiet { fill: #9198a1 } .ground { fill: #0d1117 } .track { fill: #21262d }
  .mark { stroke: #f0f6fc } .refused { fill: #6e7681 }
}
"""


def chart(published: Sequence[Taken]) -> str:
    """docs/pictures/benchmarks.svg, whole; the same for the same rows."""
    groups = _groups(published)
    drawn: list[str] = []
    top = _TOP
    for store, rows in groups.items():
        drawn.append(_text(_MARGIN, top + 18, store, "group"))
        top += _GROUP
        for row, judged in rows:
            drawn += _drawn(row, judged, top)
            top += _ROW
    return "\n".join([*_head(published, top + _MARGIN), *drawn, "</svg>"]) + "\n"


def _groups(published: Sequence[Taken]) -> dict[str, list[tuple[Row, Judged]]]:
    """Without those that have nothing to show."""
    groups = {
        store: [(row, row.judged) for one in those for row in one.rows if row.judged is not None]
        for store, those in by_store(published).items()
    }
    return {store: rows for store, rows in groups.items() if rows}


def _head(published: Sequence[Taken], height: int) -> Iterator[str]:
    days = sorted({taken.day for taken in published})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "never"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        ' role="img" aria-labelledby="title what">'
    )
    yield '<title id="title">Noroshi: judged ratios</title>'
    yield '<desc id="what">One bar for every judged ratio, drawn against its own aim; more is better.</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="ground" width="{_WIDTH}" height="{height}" rx="8"/>'
    yield _text(_MARGIN, 38, "Judged ratios: Noroshi ÷ the limit, or ÷ a peer", "title")
    how = f"Measured {when}. Each against its own aim; more is better. Solid mark: the bar. Dashed mark: the aim."
    yield _text(_MARGIN, 60, how, "quiet")


def _drawn(row: Row, judged: Judged, top: int) -> Iterator[str]:
    yield _text(_MARGIN, top + 12, row.what)
    short = row.verdict.partition(":")[0].lower()
    yield _text(_WIDTH - _MARGIN, top + 12, f"{judged.value:.2f}, {short}", "end")
    track = top + 20
    yield _bar("track", track, _TRACK)
    yield _bar(_kind(short), track, _place(judged.value, judged) - _MARGIN)
    if judged.value > judged.aim * _MOST:
        yield _text(_WIDTH - _MARGIN - 4, track + 11, "»", "end")
    below = track + _THICK + 13
    if judged.bar is not None:
        place = _place(judged.bar, judged)
        yield _mark(place, track, "mark")
        yield _text(place + 1, below, f"bar {judged.bar:g}", "quiet end")
    place = _place(judged.aim, judged)
    yield _mark(place, track, "mark aim")
    yield _text(place + 5, below, f"aim {judged.aim:g}", "quiet")


def _kind(verdict: str) -> str:
    """The colour; an aim without a bar fails nothing."""
    kind = verdict.partition(" (")[0].replace(" ", "-")
    return "bar-met" if kind == "aim-not-met" else kind


def _bar(kind: str, track: int, length: float) -> str:
    return f'<rect class="{kind}" x="{_MARGIN}" y="{track}" width="{length:g}" height="{_THICK}" rx="2"/>'


def _place(value: float, judged: Judged) -> float:
    """How far to the right a value stands."""
    share = min(max(value / judged.aim, 0.0), _MOST) / _MOST
    return round(_MARGIN + share * _TRACK, 1)


def _mark(place: float, track: int, kinds: str) -> str:
    return f'<line class="{kinds}" x1="{place:g}" x2="{place:g}" y1="{track - 3}" y2="{track + _THICK + 3}"/>'


def _text(across: float, down: float, text: str, kinds: str = "") -> str:
    kind = f' class="{kinds}"' if kinds else ""
    return f'<text{kind} x="{across:g}" y="{down:g}">{escape(text)}</text>'
