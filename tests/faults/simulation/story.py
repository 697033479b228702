"""A world told: its scenario and what became of every message go in, lines for a person come out."""

from collections.abc import Iterator

from noroshi.domain.instants import Instant
from tests.faults.machinery.sim_ports import SIM_START
from tests.faults.simulation.facts import Facts, NotificationFacts
from tests.faults.simulation.provider import Provider
from tests.faults.simulation.scenario import CancelErrand, PauseErrand, ReplayErrand, Scenario


def tell_scenario(scenario: Scenario) -> Iterator[str]:
    yield f"callers want {scenario.mix}; weather {scenario.weather}; answers wait {scenario.answer_wait}"
    for ask in scenario.asks:
        request = ask.request
        wanted = request.channels if isinstance(request.channels, list) else "every channel"
        extras = [f"{name}={value}" for name in ("scheduled_at", "expires_at") if (value := getattr(request, name))]
        yield (
            f"{ask.name} at {ask.at:.3f} x{ask.copies}: {request.template_id} {ask.text!r} on {wanted} to "
            f"{','.join(request.user_ids)}; {request.priority} {request.category} key={ask.key} {' '.join(extras)}"
        )
    for errand in scenario.errands:
        match errand:
            case CancelErrand():
                yield f"{errand.ask.name} will be cancelled {errand.after:.3f} after its answer"
            case PauseErrand():
                yield f"{errand.kind} {errand.name or ''} is paused from {errand.at:.3f} to {errand.until:.3f}"
            case ReplayErrand():
                what = "discarded" if errand.is_discard else "replayed"
                yield f"dead letters {errand.matching} are {what} at {errand.at:.3f}"


def tell_fates(facts: Facts, provider: Provider) -> Iterator[str]:
    """Every notification with its trail, and each time the provider was handed or took one of its deliveries."""
    for one in sorted(facts.notifications.values(), key=lambda one: (one.batch.name, one.notification_id)):
        yield f"{one.batch.name} {one.user_id} {one.channel}: {one.status.name} {one.reason or ''}"
        for at, line in sorted(_events(one, provider), key=lambda event: event[0]):
            yield f"    {_seconds(at):10.3f}  {line}"


def _events(one: NotificationFacts, provider: Provider) -> Iterator[tuple[Instant, str]]:
    yield one.at, "decided"
    for noted in one.trail:
        yield noted.at, f"{noted.kind} {noted.detail or ''}"
    for handed in provider.handed:
        if handed.attempt.key.notification_id == one.notification_id:
            key, number = handed.attempt.key, handed.attempt.number
            yield (
                handed.at,
                f"handed to {handed.account} by life {handed.life}, endpoint {key.endpoint_id}, try {number}",
            )
    for taking in provider.takings:
        if taking.attempt.key.notification_id == one.notification_id:
            excused = ", its answer was lost" if taking.is_excused else ""
            yield taking.handed_at, f"TAKEN for endpoint {taking.attempt.key.endpoint_id}{excused}"


def _seconds(at: Instant) -> float:
    return (at - SIM_START) / 1_000_000
