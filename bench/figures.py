"""Figures: measurements taken in pairs in; ratios, their spread and a verdict out."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal, NamedTuple

from msgspec import Struct, field

from bench.processes import Memory, Usage

MOST_MOVED = 0.35
"""How far a limit may move within one run before nothing may be concluded from it."""


class Measured(Struct, frozen=True, kw_only=True):
    """One side of a pair. Rates are in units a second, latencies in ms, CPU in microseconds a unit."""

    rate: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu: dict[str, float] = field(default_factory=dict)
    peak_mb: float | None = None


def measured(
    units: int,
    seconds: float,
    *,
    usage: Usage | None = None,
    generator: float = 0.0,
    memory: Memory | None = None,
    p50_ms: float | None = None,
    p99_ms: float | None = None,
) -> Measured:
    used = {"server": usage.server, "child": usage.child} if usage is not None else {}
    if generator:
        used["generator"] = generator
    return Measured(
        rate=units / seconds,
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        cpu={name: value / units * 1e6 for name, value in used.items()},
        peak_mb=None if memory is None else memory.peak,
    )


def joined(parts: Sequence[Measured]) -> Measured:
    """Parts of equal length as one: rates and CPU on average, p99 and memory as bad as they were once."""
    return Measured(
        rate=fmean(part.rate for part in parts),
        p50_ms=median(part.p50_ms for part in parts if part.p50_ms is not None),
        p99_ms=max(part.p99_ms for part in parts if part.p99_ms is not None),
        cpu={name: fmean(part.cpu[name] for part in parts) for name in parts[0].cpu},
        peak_mb=max((part.peak_mb for part in parts if part.peak_mb is not None), default=None),
    )


class Goal(NamedTuple):
    """What must be reached and what is aimed for. Without a bar it is an aim alone: to miss it fails nothing."""

    bar: float | None
    aim: float
    sign: Literal["≥", "≤", "<"] = "≥"

    def verdict(self, value: float) -> str:
        if self._is_met(value, self.aim):
            return "aim met"
        if self.bar is None:
            return "aim not met"
        return "bar met" if self._is_met(value, self.bar) else "MISSED"

    def bar_text(self, unit: str = "") -> str:
        return "" if self.bar is None else f"{self.sign} {self.bar:g}{unit}"

    def aim_text(self, unit: str = "") -> str:
        return f"{self.aim:g}{unit}"

    def _is_met(self, value: float, goal: float) -> bool:
        if self.sign == "≥":
            return value >= goal
        return value <= goal if self.sign == "≤" else value < goal


class Judged(Struct, frozen=True):
    """The ratio that a verdict was given on, as numbers: what the chart draws."""

    value: float
    bar: float | None
    aim: float


class Row(Struct, kw_only=True, omit_defaults=True):
    """A line of the table, as text."""

    what: str
    population: str
    figure: str
    limit: str = ""
    ratio: str = ""
    spread: str = ""
    bar: str = ""
    aim: str = ""
    verdict: str = "not judged"
    p50: str = ""
    p99: str = ""
    cpu: str = ""
    peak: str = ""
    judged: Judged | None = None

    def miss(self, why: str) -> None:
        """Another bar of this row was missed. What was refused stays refused: nothing is concluded from it."""
        if not self.verdict.startswith(("REFUSED", "MISSED")):
            self.verdict = f"MISSED ({why})"


class Pair(NamedTuple):
    ours: Measured
    limit: Measured

    @property
    def ratio(self) -> float:
        return self.ours.rate / self.limit.rate


def moved(values: Sequence[float]) -> float:
    """How far apart the largest and the smallest are, as a share of the smallest."""
    return max(values) / min(values) - 1 if values and min(values) > 0 else 0.0


def refusal(limits: Sequence[float]) -> str | None:
    """Why nothing may be concluded, if the limit moved too far."""
    far = moved(limits)
    return f"REFUSED: limit moved {far:.0%}" if far > MOST_MOVED else None


def ratio_row(
    what: str,
    population: str,
    unit: str,
    pairs: Sequence[Pair],
    goal: Goal | None,
    *,
    worst_p99_ms: float | None = None,
) -> Row:
    """Judged by the median of the pairs' ratios, and by the p99 where there is a bar for it."""
    ratios = [pair.ratio for pair in pairs]
    middle = median(ratios)
    row = Row(
        what=what,
        population=population,
        figure=f"{median(pair.ours.rate for pair in pairs):,.0f} {unit}/s",
        limit=f"{median(pair.limit.rate for pair in pairs):,.0f} {unit}/s, "
        f"{median(sum(pair.limit.cpu.values()) for pair in pairs):,.0f} µs CPU each",
        ratio=f"{middle:.2f}",
        spread=_spread(ratios),
    )
    _tell_sides(row, [pair.ours for pair in pairs])
    if goal is not None:
        judge(row, middle, goal)
        if worst_p99_ms is not None:
            row.bar += f", p99 < {worst_p99_ms:g} ms"
            if median(pair.ours.p99_ms or 0.0 for pair in pairs) >= worst_p99_ms:
                row.miss("p99")
    row.verdict = refusal([pair.limit.rate for pair in pairs]) or row.verdict
    return row


def judge(row: Row, ratio: float, goal: Goal) -> None:
    """Writes what a ratio must be, and whether it is, into its row."""
    row.bar, row.aim, row.verdict = goal.bar_text(), goal.aim_text(), goal.verdict(ratio)
    row.judged = Judged(ratio, goal.bar, goal.aim)


def latency_row(
    what: str,
    population: str,
    runs: Sequence[Measured],
    goal: Goal,
    probes: Sequence[float],
    *,
    p50: Goal | None = None,
) -> Row:
    """Judged by the p99 (and the p50 where it has a bar); the limit is one durable write and one loopback call."""
    p99s = [run.p99_ms or 0.0 for run in runs]
    p50s = [run.p50_ms or 0.0 for run in runs]
    probe = median(probes)
    middle = median(p99s)
    row = Row(
        what=what,
        population=population,
        figure=f"p99 {middle:.1f} ms",
        limit=f"{probe:.2f} ms",
        ratio=f"{median(p50s) / probe:.1f} (p50)",
        spread=_spread(p99s),
        bar=goal.bar_text(" ms"),
        aim=goal.aim_text(" ms"),
        verdict=goal.verdict(middle),
    )
    _tell_sides(row, runs)
    if p50 is not None:
        row.bar = f"{p50.bar_text()} / {goal.bar:g} ms"
        row.aim = f"{p50.aim_text()} / {goal.aim_text(' ms')}"
        ranks = ("MISSED", "bar met", "aim met")
        row.verdict = min(row.verdict, p50.verdict(median(p50s)), key=ranks.index)
    row.verdict = refusal(probes) or row.verdict
    return row


def _spread(values: Sequence[float]) -> str:
    return f"±{(max(values) - min(values)) / 2 / median(values):.0%}" if len(values) > 1 else ""


def _tell_sides(row: Row, runs: Sequence[Measured]) -> None:
    """The columns that tell of one side: latencies, CPU a unit and the highest memory."""
    if all(run.p99_ms is not None for run in runs):
        row.p50 = f"{median(run.p50_ms or 0.0 for run in runs):.1f}"
        row.p99 = f"{median(run.p99_ms or 0.0 for run in runs):.1f}"
    names = [name for name in ("server", "child", "generator", "database") if any(name in run.cpu for run in runs)]
    row.cpu = " / ".join(f"{median(run.cpu.get(name, 0.0) for run in runs):,.0f}" for name in names)
    peaks = [run.peak_mb for run in runs if run.peak_mb is not None]
    row.peak = f"{max(peaks):.0f}" if peaks else ""
