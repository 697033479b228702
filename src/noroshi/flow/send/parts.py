"""What a provider is made from when the roll of channels is called, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from noroshi.ports.attachments import Attachments
from noroshi.ports.caught import Caught
from noroshi.ports.channel import Channel
from noroshi.ports.clock import Clock
from noroshi.ports.dice import Dice
from noroshi.ports.outgoing import Outgoing


class Parts(Struct, frozen=True):
    """`values` are the settings by name (`NOROSHI_...`), of which a provider reads its own; `served` are the
    channels that the providers before it in the roll already serve."""

    clock: Clock
    dice: Dice
    attachments: Attachments
    caught: Caught
    outgoing: Outgoing
    values: Mapping[str, str]
    served: frozenset[str] = frozenset()


class Off(Struct, frozen=True):
    """The provider is not configured and steps aside; `why` is shown when the server starts."""

    why: str


class ProviderSetting(Struct, frozen=True):
    """A setting that a provider brings along in its `SETTINGS`: a row on its page in docs/channels. `read` raises
    ValueError with what is allowed, and never quotes a secret. `also` is another variable that says the same."""

    key: str
    read: Callable[[str], Any]
    help: str
    default: str | None = None
    default_text: str = ""
    is_secret: bool = False
    also: str = ""

    @property
    def variable(self) -> str:
        return f"NOROSHI_{self.key.upper()}"


class UnfitSettingError(ValueError):
    """Settings that do not go together; the text says which and what to write, and stops the start."""


OpenProvider = Callable[[Parts], Channel | Sequence[Channel] | Off]
"""The accounts of one provider, ready to send."""
