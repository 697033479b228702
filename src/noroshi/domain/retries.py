"""Retries (N6.1): a channel's policy, how often was tried and a throw of the dice in; how long to wait out."""

from datetime import timedelta

from noroshi.domain.channels import RetryPolicy


def retry_delay(policy: RetryPolicy, attempt: int, fraction: float) -> timedelta:
    """`attempt` counts from 0 (the first retry); `fraction` in [0, 1) spreads the delay over 0.5 ... 1.5 of itself."""
    delay = policy.base
    for _ in range(attempt):
        if delay >= policy.longest:
            break
        delay *= policy.factor
    return min(delay, policy.longest) * (0.5 + fraction)
