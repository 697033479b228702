"""Settings of Courier: token and address in; one CourierSettings, or Off, out."""

from collections.abc import Mapping

from msgspec import Struct

from noroshi.flow.send.parts import Off, ProviderSetting


class CourierSettings(Struct, frozen=True):
    token: str
    url: str

    def __repr__(self) -> str:
        return f"CourierSettings(url={self.url!r})"


def _read_token(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be the token of the account, without spaces")
    return text


def _read_url(text: str) -> str:
    if not text.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError("must begin with https://: the token would cross the network in clear")
    return text.rstrip("/")


SETTINGS = (
    ProviderSetting(
        "courier_token", _read_token, "The token of the Courier account.", default_text="no Courier", is_secret=True
    ),
    ProviderSetting("courier_url", _read_url, "Where Courier is.", "https://api.courier.example"),
)


def read_settings(values: Mapping[str, str]) -> CourierSettings | Off:
    token, url = (row.read(text) if (text := values.get(row.variable, row.default)) else None for row in SETTINGS)
    return CourierSettings(token, url) if token else Off("NOROSHI_COURIER_TOKEN is not set")
