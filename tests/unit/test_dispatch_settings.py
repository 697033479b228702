"""The settings of dispatch."""

import pytest
from dispatch_cast import PUSH

from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.settings import DispatchSettings, SettingError, read_settings


@pytest.mark.parametrize(
    ("channel", "priority", "workers"),
    [
        ("push", "critical", 4),
        ("push", "high", 4),
        ("push", "normal", 2),
        ("push", "low", 1),
        ("email", "normal", 3),
        ("sms", "normal", 1),
        ("voice", "critical", 2),
        ("their_own", "low", 1),
    ],
)
def test_lanes_have_their_default_workers(channel: str, priority: str, workers: int) -> None:  # N5.3
    assert DispatchSettings().workers_of(Lane(channel, "acme", Priority(priority))) == workers


def test_workers_can_be_set_for_each_lane() -> None:  # N5.3
    settings = read_settings({"NOROSHI_WORKERS": "push.normal=7, email.low=2"})
    assert settings.workers_of(PUSH) == 7
    assert settings.workers_of(Lane("email", "ses", Priority.LOW)) == 2
    assert settings.workers_of(Lane("email", "ses", Priority.NORMAL)) == 3


@pytest.mark.parametrize("text", ["push=3", "push.urgent=3", "push.low=", "push.low=x", "push.low=0", ".low=1"])
def test_a_setting_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(SettingError, match="NOROSHI_WORKERS"):
        read_settings({"NOROSHI_WORKERS": text})
