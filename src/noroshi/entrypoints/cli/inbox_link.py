"""The inbox of the demonstration: its person and key in, an address to open in a browser out."""

from urllib.parse import urlencode

from rich.console import Console

from noroshi.bootstrap.noroshi import Noroshi
from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.passes import TOKEN_LIVES
from noroshi.domain.requests import Caller

_PERSON = "hanako"


def inbox_link(noroshi: Noroshi, url: str, key: str) -> str:
    """The token stands behind the #, which no browser sends to anybody."""
    caller = Caller(DEFAULT_TENANT, api_keys.key_id(key), "demonstration", frozenset())
    token, _ = noroshi.passes.issue_token(caller, _PERSON, TOKEN_LIVES)
    return f"{url}/inbox-demo#{urlencode({'user': _PERSON, 'token': token})}"


def print_inbox(noroshi: Noroshi, url: str, key: str, console: Console | None = None) -> None:
    console = console or Console()
    console.print("# Her inbox, for an hour", style="bold", highlight=False)
    console.print(inbox_link(noroshi, url, key), soft_wrap=True, markup=False, highlight=False)
    console.print()
