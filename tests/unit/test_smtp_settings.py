"""Settings of e-mail over SMTP: which URL means what, what stops the start, and that no message shows a password."""

from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from dispatch_cast import FixedDice, HandClock

from noroshi.flow.send.email.smtp.settings import Relay, Security, SmtpSettings, read_settings, read_url
from noroshi.flow.send.parts import Off, Parts
from noroshi.flow.send.registry import RegistryError, call_roll
from noroshi.ports.attachments import Attachments
from noroshi.ports.caught import Caught
from noroshi.ports.outgoing import Outgoing
from noroshi.settings import SettingsError
from noroshi.settings import read_settings as read_all


@pytest.mark.parametrize(
    ("url", "relay"),
    [
        ("smtp://relay.example", Relay("relay.example", 587, Security.STARTTLS)),
        ("smtp://relay.example:25", Relay("relay.example", 25, Security.STARTTLS)),
        ("smtps://relay.example", Relay("relay.example", 465, Security.AT_ONCE)),
        ("smtp://u:p@relay.example", Relay("relay.example", 587, Security.STARTTLS, "u", "p")),
        (
            "smtps://a%40b.example:p%3A%2F%40@relay.example:1",
            Relay("relay.example", 1, Security.AT_ONCE, "a@b.example", "p:/@"),
        ),
        ("smtp://relay.example?starttls=off", Relay("relay.example", 587, Security.NONE)),
        ("smtp://127.0.0.1:1025", Relay("127.0.0.1", 1025, Security.NONE)),
        ("smtp://u:p@localhost:1025", Relay("localhost", 1025, Security.NONE, "u", "p")),
        ("smtp://[::1]:1025/", Relay("::1", 1025, Security.NONE)),
        ("smtp://127.0.0.1:1025?starttls=required", Relay("127.0.0.1", 1025, Security.STARTTLS)),
    ],
)
def test_a_url_says_where_and_how(url: str, relay: Relay) -> None:
    assert read_url(url) == relay


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("relay.example:25", "must be smtp://"),
        ("http://u:Sesam-99@relay.example", "must be smtp://"),
        ("smtp://u:Sesam-99@", "must be smtp://"),
        ("smtp://u:Sesam-99@relay.example:port", "must be smtp://"),
        ("smtp://u:Sesam-99@relay.example/path", "must be smtp://"),
        ("smtp://u:Sesam-99@re lay", "must be smtp://"),
        ("smtp://u:Ses/am-99@relay.example", "must be smtp://"),
        ("smtp://u@relay.example", "both a user and a password"),
        ("smtp://u:Sesam-99@relay.example?starttls=off", "password would cross the network in clear"),
        ("smtp://u:Sesam-99@relay.example?starttls=maybe", "required or off"),
        ("smtp://u:Sesam-99@relay.example?tls=off", "one option only"),
        ("smtps://u:Sesam-99@relay.example?starttls=off", "smtp:// only"),
    ],
)
def test_a_url_that_cannot_be_used_stops_the_start_without_showing_it(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=f"NOROSHI_SMTP_URL.*{why}") as raised:
        read_all({"NOROSHI_SMTP_URL": url})
    assert "Sesam" not in str(raised.value) and "am-99" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("FROM", "nobody", "must be `address` or `Name <address>`"),
        ("FROM", "花子 <花子@example.com>", "in ASCII"),
        ("REPLY_TO", "a@b\r\nBcc: c@d", "must be `address`"),
        ("HELO", "a b", "must be a host name"),
        ("CA", "/does/not/exist", "PEM file that exists"),
        ("CONNECTIONS", "0", "from 1 to 64"),
        ("CONNECTIONS", "many", "from 1 to 64"),
        ("PER_SECOND", "0.5", "from 1 to"),
        ("TIMEOUT", "5", "from 10 to 600"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_the_start(name: str, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=f"NOROSHI_SMTP_{name} .*{why}"):
        read_all({"NOROSHI_SMTP_URL": "smtp://127.0.0.1", f"NOROSHI_SMTP_{name}": text})


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    (tmp_path / "url").write_text("smtps://u:p@relay.example\n")
    settings = read_settings(
        read_all(
            {
                "NOROSHI_SMTP_URL_FILE": str(tmp_path / "url"),
                "NOROSHI_SMTP_FROM": "Shop <shop@b.example>",
                "NOROSHI_SMTP_REPLY_TO": "help@b.example",
                "NOROSHI_SMTP_HELO": "mail.b.example",
                "NOROSHI_SMTP_CA": str(ca),
                "NOROSHI_SMTP_CONNECTIONS": "9",
                "NOROSHI_SMTP_PER_SECOND": "14",
                "NOROSHI_SMTP_TIMEOUT": "600",
            }
        ).values
    )
    assert isinstance(settings, SmtpSettings)
    assert settings.relay == Relay("relay.example", 465, Security.AT_ONCE, "u", "p")
    assert (settings.sender.name, settings.sender.address.text) == ("Shop", "shop@b.example")
    assert settings.reply_to is not None and settings.reply_to.address.text == "help@b.example"
    assert (settings.helo, settings.ca, settings.connections, settings.per_second) == ("mail.b.example", ca, 9, 14)
    assert settings.timeout == timedelta(minutes=10)
    assert "'p'" not in repr(settings)


def roll(**values: str) -> dict[str, str]:
    parts = Parts(
        HandClock(),
        FixedDice(),
        cast(Attachments, None),
        cast(Caught, None),
        cast(Outgoing, None),
        {f"NOROSHI_{k.upper()}": v for k, v in values.items()},
    )
    return call_roll(parts).served


def test_the_user_of_the_url_is_the_sender_if_it_is_an_address() -> None:
    settings = read_settings({"NOROSHI_SMTP_URL": "smtps://shop%40b.example:p@relay.example"})
    assert isinstance(settings, SmtpSettings) and settings.sender.address.text == "shop@b.example"
    with pytest.raises(RegistryError, match="NOROSHI_SMTP_FROM must be set"):
        roll(smtp_url="smtps://apikey:p@relay.example")


def test_without_a_url_smtp_steps_aside_and_with_one_it_comes_before_the_catcher() -> None:
    assert read_settings({}) == Off("NOROSHI_SMTP_URL is not set")
    assert "email" not in roll()
    served = roll(smtp_url="smtp://127.0.0.1:25", smtp_from="a@b.example", catcher="on")
    assert served["email"] == "smtp" and served["sms"] == "catcher-sms"
