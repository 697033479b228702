"""Payload of the inbox: content in, what the person will see out, or why it cannot be shown."""

from typing import Any

from noroshi.domain.inbox import LONGEST_CONTENT, InboxContent, encode_content
from noroshi.domain.outcomes import Rejected
from noroshi.domain.templates import Content

TOO_LARGE = "PAYLOAD_TOO_LARGE"
BAD_URL = "BAD_URL"
BAD_DATA = "BAD_DATA"

_LINKS = ("https://", "http://", "/")


def payload_of(content: Content) -> str | Rejected:
    """The JSON text of an InboxContent. Text stays text: whoever shows it must not take it for HTML."""
    url, data = content.metadata.get("url"), content.metadata.get("data", {})
    if url is not None and not _is_link(url):
        return Rejected(BAD_URL, "metadata.url must begin with https://, http:// or a single /")
    if not isinstance(data, dict):
        return Rejected(BAD_DATA, "metadata.data must be an object")
    shown = InboxContent(body=content.body, title=content.title or content.subject, url=url, data=data)
    payload = encode_content(shown)
    if len(payload) > LONGEST_CONTENT:
        return Rejected(TOO_LARGE, f"{len(payload):,} bytes, where an entry of an inbox has {LONGEST_CONTENT:,}")
    return payload.decode()


def _is_link(url: Any) -> bool:
    """Never `javascript:` or `//elsewhere`, wherever the page that shows it may be."""
    return isinstance(url, str) and url.lower().startswith(_LINKS) and not url.startswith(("//", "/\\"))
