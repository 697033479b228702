"""HTML in, the text a person would read out: the plain part of a mail whose template has none.

One pass without looking back, so that a page made to be hard takes no longer than any other of its size.
"""

import re
from html import unescape

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_BEGINS_TAG = re.compile(r"</?[A-Za-z]")
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f]+")
_NEW_LINE = "\x1e"
"""Where a line begins if one has not just begun; no text holds it."""
_GAPS = re.compile(rf"[ \n{_NEW_LINE}]+")

_UNSEEN = frozenset({"head", "script", "style", "template", "title"})
_LINE = frozenset({"dd", "div", "dt", "tr"})
_PARAGRAPH = frozenset(
    {"article", "blockquote", "dl", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "ol", "p", "pre"}
    | {"section", "table", "ul"}
)


def text_of(html: str) -> str:
    """Paragraphs are kept apart, items of a list begin with `- `, and a link is followed by where it leads."""
    pieces: list[str] = []
    place, link = 0, ""
    while (start := html.find("<", place)) >= 0:
        pieces.append(_words(html[place:start]))
        if html.startswith("<!", start):
            place = _after(html, "-->" if html.startswith("<!--", start) else ">", start)
            continue
        tag = _TAG.match(html, start)
        if tag is None:
            if _BEGINS_TAG.match(html, start):  # and never ends: nothing after it is seen
                return _tidy("".join(pieces))
            pieces.append("<")
            place = start + 1
            continue
        name, is_end, place = tag[1].lower(), html[start + 1] == "/", tag.end()
        if name in _UNSEEN and not is_end:
            place = _after_element(html, name, place)
        elif name == "a":
            pieces.append(f" ({link})" if is_end and link else "")
            link = "" if is_end else _target(tag[2])
        else:
            pieces.append(_break(name, is_end=is_end))
    pieces.append(_words(html[place:]))
    return _tidy("".join(pieces))


def _words(text: str) -> str:
    return unescape(_SPACES.sub(" ", text)).replace(_NEW_LINE, "")


def _break(name: str, *, is_end: bool) -> str:
    if name in _PARAGRAPH:
        return "\n\n"
    if name == "li":
        return "" if is_end else f"{_NEW_LINE}- "
    if name in {"td", "th"}:
        return " "
    if name == "br":
        return "\n"
    return _NEW_LINE if name in _LINE else ""


def _target(attributes: str) -> str:
    """Of a link, if it leads anywhere by itself."""
    found = _HREF.search(attributes)
    target = unescape(next(filter(None, found.groups()), "")).strip() if found else ""
    return target if target.startswith(("http://", "https://", "mailto:", "tel:")) else ""


def _after(html: str, mark: str, place: int) -> int:
    found = html.find(mark, place)
    return len(html) if found < 0 else found + len(mark)


def _after_element(html: str, name: str, place: int) -> int:
    found = re.compile(f"</{name}", re.IGNORECASE).search(html, place)
    return len(html) if found is None else _after(html, ">", found.end())


def _tidy(text: str) -> str:
    return _GAPS.sub(_gap, text).strip()


def _gap(found: re.Match[str]) -> str:
    if (breaks := found[0].count("\n")) > 1:
        return "\n\n"
    return "\n" if breaks or _NEW_LINE in found[0] else " "
