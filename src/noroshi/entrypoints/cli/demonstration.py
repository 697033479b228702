"""The demonstration: one person, one template and a key in; three commands to paste out."""

from datetime import timedelta

from rich.console import Console
from rich.panel import Panel

from noroshi.bootstrap import Noroshi
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.people import User
from noroshi.domain.records import KeyScope

_PERSON = User(
    user_id="hanako", email="hanako@example.com", name="花子", locale="ja", timezone="Asia/Tokyo", attributes={}
)
_TEMPLATE = "welcome"
_TEXTS = {
    "ja": ("ようこそ、{{ user.name }}さん", "{{ user.name }}さん、{{ shop }}へようこそ。"),
    "en": ("Welcome, {{ user.name }}", "Hello {{ user.name }}, welcome to {{ shop }}."),
}
_KEY_LIVES = timedelta(days=7)


async def seed_demonstration(noroshi: Noroshi) -> str:
    """The key. Person and template are made once and then left as they are."""
    if await noroshi.people.get_user(DEFAULT_TENANT, _PERSON.user_id) is None:
        await noroshi.people.put_user(DEFAULT_TENANT, _PERSON)
    if not await noroshi.templates.versions(DEFAULT_TENANT, _TEMPLATE):
        for locale, (subject, body) in _TEXTS.items():
            await noroshi.templates.add(
                DEFAULT_TENANT,
                _TEMPLATE,
                channel="email",
                locale=locale,
                variant="",
                subject=subject,
                title=None,
                body=body,
                metadata={},
                created_by="demonstration",
            )
    return await noroshi.mint_key("demonstration", list(KeyScope), None, _KEY_LIVES)


def demonstration_commands(url: str, key: str) -> list[tuple[str, str]]:
    """(what it does, the command)."""
    authorized = f"-H 'Authorization: Bearer {key}'"
    request = '{"user_ids": ["hanako"], "template_id": "welcome", "data": {"shop": "Noroshi"}}'
    return [
        ("Send", f"curl -s {url}/api/v1/notifications {authorized} -d '{request}'"),
        ("What arrived", f"curl -s '{url}/api/v1/caught?user_id=hanako' {authorized}"),
        ("Why it arrived", f"curl -s {url}/api/v1/users/hanako/notifications {authorized}"),
    ]


def print_demonstration(url: str, key: str, console: Console | None = None) -> None:
    """Commands stand outside the frame and are never broken into lines, so that they can be copied."""
    console = console or Console()
    greeting = f"Noroshi listens on {url}. Messages are caught here; nobody gets them."
    console.print(Panel(greeting, expand=False) if console.is_terminal else greeting, soft_wrap=True)
    for title, command in demonstration_commands(url, key):
        console.print(f"\n# {title}", style="bold", highlight=False)
        console.print(command, soft_wrap=True, markup=False, highlight=False)
    console.print()
