"""Mail addresses: text in; an address that is safe in a command and in a header, or None, out."""

import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LOCAL = re.compile(rf"(?=.{{1,64}}\Z){_ATOM}(?:\.{_ATOM})*")
_DOMAIN = re.compile(rf"(?=.{{1,255}}\Z){_LABEL}(?:\.{_LABEL})*")
_MAILBOX = re.compile(r'\s*(?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^"<>]*?))\s*<(?P<address>[^<>]+)>\s*')


class Address(NamedTuple):
    """`domain` is always ASCII (A-labels); a `local` part that is not needs SMTPUTF8 all the way."""

    local: str
    domain: str

    @property
    def text(self) -> str:
        return f"{self.local}@{self.domain}"

    @property
    def needs_utf8(self) -> bool:
        return not self.local.isascii()


class Mailbox(NamedTuple):
    """An address and the name shown beside it, which may be empty."""

    name: str
    address: Address


def read_address(text: str) -> Address | None:
    """None for everything that is no plain `local@domain`: quoted and commented forms too, and what some readers would
    take for an encoded word, which can hide a line break."""
    local, at, domain = text.rpartition("@")
    if not at or "=?" in text:
        return None
    if not text.isascii():
        return _read_international(text)
    if _LOCAL.fullmatch(local) and _DOMAIN.fullmatch(domain):
        return Address(local, domain)
    return None


def read_mailbox(text: str) -> Mailbox | None:
    """`address` or `Name <address>`."""
    found = _MAILBOX.fullmatch(text)
    address = read_address(found["address"] if found else text.strip())
    if address is None:
        return None
    name = (found["quoted"] or found["plain"] or "") if found else ""
    return Mailbox(name.strip(), address)


def _read_international(text: str) -> Address | None:
    checks = _checks()
    try:
        valid = checks.validate_email(text, check_deliverability=False)
    except checks.EmailNotValidError:
        return None
    return Address(valid.local_part, valid.ascii_domain)


@cache
def _checks() -> Any:
    """Loaded by the first address that needs it: to compile its patterns takes a twentieth of a server's start."""
    return import_module("email_validator")
