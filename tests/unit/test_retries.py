"""The delay before a retry."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noroshi.domain.channels import CHANNELS
from noroshi.domain.retries import retry_delay

MIDDLE = 0.5


@pytest.mark.parametrize(
    ("channel", "seconds"),
    [
        ("push", [1, 2, 4]),
        ("email", [5, 15, 45, 135, 300]),
        ("sms", [10, 20]),
        ("in_app", [1, 2, 4]),
        ("web_push", [2, 4, 8]),
        ("voice", [1, 2, 4]),
    ],
)
def test_each_channel_backs_off_as_its_row_says(channel: str, seconds: list[int]) -> None:
    # N6.1
    policy = CHANNELS[channel].retry
    delays = [retry_delay(policy, attempt, MIDDLE) for attempt in range(policy.retries)]
    assert delays == [timedelta(seconds=s) for s in seconds]


@given(st.sampled_from(sorted(CHANNELS)), st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_the_dice_spread_a_delay_from_half_to_one_and_a_half(channel: str, attempt: int, fraction: float) -> None:
    # N6.1
    policy = CHANNELS[channel].retry
    middle = retry_delay(policy, attempt, MIDDLE)
    assert middle / 2 <= retry_delay(policy, attempt, fraction) <= middle * 1.5
    assert middle <= policy.longest
