"""The roll of providers: settings go in; the accounts that can send, and why the others cannot, come out."""

import re
from collections.abc import Sequence
from importlib import import_module

from msgspec import Struct, field
from msgspec.structs import replace

from noroshi.flow.send.parts import Off, OpenProvider, Parts, UnfitSettingError
from noroshi.ports.channel import Channel

PROVIDERS: dict[str, str] = {
    "inbox": "noroshi.flow.send.in_app.inbox.channel:open_inbox",
    "smtp": "noroshi.flow.send.email.smtp.channel:open_smtp",
    "line": "noroshi.flow.send.line.messaging.channel:open_messaging",
    "catcher": "noroshi.flow.send.catcher.channel:open_catcher",
}
"""Name and factory, one line each, imported on first use. Of two that serve a channel the earlier gets it;
the catcher comes last, for it stands in for whoever is missing."""

OWN_CHANNELS_SETTING = "NOROSHI_CHANNELS"
OWN_CHANNELS_HELP = "Your own channels, `package.module:factory`, several separated by commas; they come first."

_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9-]+")


class RegistryError(ValueError):
    """A channel that was asked for cannot be loaded; the text says which and why."""


class Roll(Struct):
    """Accounts by name, in the order of the registry; `off` says why a provider stepped aside."""

    accounts: dict[str, Channel] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)

    @property
    def served(self) -> dict[str, str]:
        """Each channel with the account that serves it: the first that can."""
        by_channel: dict[str, str] = {}
        for name, account in self.accounts.items():
            for channel in sorted(account.channels):
                by_channel.setdefault(channel, name)
        return by_channel


def call_roll(parts: Parts) -> Roll:
    """Opens the user's own channels and then every provider of the registry that is configured."""
    roll = Roll()
    own = [p.strip() for p in parts.values.get(OWN_CHANNELS_SETTING, "").split(",")]
    for name, path in [*((p, p) for p in own if p), *PROVIDERS.items()]:
        opened = _open(name, path, replace(parts, served=frozenset(roll.served)))
        if isinstance(opened, Off):
            roll.off[name] = opened.why
            continue
        for account in opened if isinstance(opened, Sequence) else (opened,):
            _add(roll, account)
    return roll


def _open(name: str, path: str, parts: Parts) -> Channel | Sequence[Channel] | Off:
    try:
        return _load(name, path)(parts)
    except UnfitSettingError as error:
        raise RegistryError(str(error)) from error


def _load(name: str, path: str) -> OpenProvider:
    module, _, factory = path.partition(":")
    try:
        found: OpenProvider = getattr(import_module(module), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise RegistryError(f"the channel `{name}` cannot be loaded: {error}") from error
    return found


def _add(roll: Roll, account: Channel) -> None:
    if not _ACCOUNT_NAME.fullmatch(account.account):
        raise RegistryError(f"the account name `{account.account}` may have letters, digits and dashes only")
    if account.account in roll.accounts:
        raise RegistryError(f"two accounts have the name `{account.account}`")
    roll.accounts[account.account] = account
