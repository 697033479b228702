"""What the providers' plans still allow: settings in, a finding for each account that can say it out."""

from noroshi.bootstrap.opening import roll_of
from noroshi.care.findings import Finding, fine, problem, warning
from noroshi.domain.quotas import Quota
from noroshi.machine.outgoing.opening import LateOutgoing
from noroshi.ports.channel import CountedChannel
from noroshi.settings import Settings


async def examine_quotas(settings: Settings) -> list[Finding]:
    outgoing = LateOutgoing(settings.http_ca)
    try:
        accounts = roll_of(settings, outgoing).accounts
        return [
            _finding(name, await channel.quota())
            for name, channel in accounts.items()
            if isinstance(channel, CountedChannel)
        ]
    finally:
        await outgoing.close()


def _finding(account: str, quota: Quota | None) -> Finding:
    subject = f"quota of {account}"
    if quota is None:
        return warning(subject, "the provider did not say", "check its token and the way to it")
    if quota.limit is None:
        return fine(subject, f"{quota.used:,} messages this month, without a limit")
    text = f"{quota.used:,} of {quota.limit:,} messages this month"
    if quota.is_used_up:
        return problem(subject, text, "nothing more is sent until the month turns: choose a larger plan")
    if quota.is_nearly_used_up:
        return warning(subject, text, "choose a larger plan, or send less")
    return fine(subject, text)
