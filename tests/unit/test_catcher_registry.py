"""The roll of providers."""

from importlib import import_module
from typing import cast

import pytest
from dispatch_cast import FixedDice, HandClock, ScriptedChannel

from noroshi.domain.channels import CHANNELS
from noroshi.domain.misbehaviour import Fault, Misbehaviour
from noroshi.flow.send.catcher.channel import Catcher
from noroshi.flow.send.parts import Off, Parts
from noroshi.flow.send.registry import PROVIDERS, RegistryError, call_roll
from noroshi.ports.attachments import Attachments
from noroshi.ports.caught import Caught
from noroshi.ports.outgoing import Outgoing

HERE = __name__


def own_push(parts: Parts) -> ScriptedChannel:
    return ScriptedChannel("own-push", ("push", "pager"))


def two_accounts(parts: Parts) -> list[ScriptedChannel]:
    return [ScriptedChannel("first", ("email",)), ScriptedChannel("second", ("email", "sms"))]


def bad_name(parts: Parts) -> ScriptedChannel:
    return ScriptedChannel("has.dots", ("push",))


def not_configured(parts: Parts) -> Off:
    return Off("no key")


def parts(**values: str) -> Parts:
    return Parts(HandClock(), FixedDice(), cast(Attachments, None), cast(Caught, None), cast(Outgoing, None), values)


def test_without_settings_every_provider_steps_aside_and_says_why() -> None:
    roll = call_roll(parts(NOROSHI_INBOX="off"))
    assert roll.accounts == {}
    assert roll.off.keys() == PROVIDERS.keys() and all(roll.off.values())


def test_the_catcher_stands_in_for_every_channel_under_an_account_each() -> None:  # N5.2
    roll = call_roll(parts(NOROSHI_CATCHER="on", NOROSHI_INBOX="off"))
    assert roll.served.keys() == CHANNELS.keys()
    assert len(set(roll.served.values())) == len(CHANNELS)
    assert all("." not in name and "_" not in name for name in roll.accounts)


def test_all_accounts_of_the_catcher_obey_the_same_orders() -> None:
    roll = call_roll(parts(NOROSHI_CATCHER="on", NOROSHI_INBOX="off"))
    catchers = [cast(Catcher, c) for c in roll.accounts.values()]
    catchers[0].misbehave(Misbehaviour(Fault.GONE))
    assert all(c.misbehaviours.in_force() for c in catchers)


def test_own_channels_come_first_and_the_catcher_takes_the_rest() -> None:
    roll = call_roll(parts(NOROSHI_CATCHER="on", NOROSHI_CHANNELS=f"{HERE}:own_push, {HERE}:two_accounts"))
    assert list(roll.accounts)[:4] == ["own-push", "first", "second", "inbox"]
    assert roll.served["push"] == roll.served["pager"] == "own-push"
    assert (roll.served["email"], roll.served["sms"]) == ("first", "second")
    assert roll.served["voice"] == "catcher-voice"


def test_in_app_is_the_inboxs_own_without_any_setting() -> None:  # N1.6
    assert call_roll(parts()).served == {"in_app": "inbox"}
    assert call_roll(parts(NOROSHI_CATCHER="on")).served["in_app"] == "inbox"
    assert call_roll(parts(NOROSHI_CATCHER="on", NOROSHI_INBOX="off")).served["in_app"] == "catcher-in-app"


def test_an_own_channel_may_step_aside_too() -> None:
    assert call_roll(parts(NOROSHI_CHANNELS=f"{HERE}:not_configured")).off[f"{HERE}:not_configured"] == "no key"


@pytest.mark.parametrize("path", ["no.such.module:factory", f"{HERE}:no_such_factory", HERE, "::", f"{HERE}:bad_name"])
def test_an_own_channel_that_cannot_be_loaded_stops_the_start_with_its_name(path: str) -> None:
    with pytest.raises(RegistryError):
        call_roll(parts(NOROSHI_CHANNELS=path))


def test_two_accounts_cannot_have_one_name() -> None:
    with pytest.raises(RegistryError, match="own-push"):
        call_roll(parts(NOROSHI_CHANNELS=f"{HERE}:own_push,{HERE}:own_push"))


@pytest.mark.parametrize("path", PROVIDERS.values())
def test_every_line_of_the_registry_can_be_loaded(path: str) -> None:
    module, _, factory = path.partition(":")
    assert callable(getattr(import_module(module), factory))
