"""The console: one page after the other over an idle server, from the request until the whole page is there.

Every page is asked for by itself; the slowest of them is judged. The catcher holds some hundred messages beside P1.
"""

import http.client
import time
from statistics import median
from urllib.parse import urlencode

from bench.cast import reachable_users, user_id
from bench.figures import Goal, Row, refusal
from bench.generator import percentile
from bench.run import Run
from bench.server import BenchError, Noroshi, noroshi_on
from noroshi.domain.ids import notification_id, show

GOAL = Goal(bar=50, aim=20, sign="<")

_CAUGHT = 200
_WARM_UP = 5


def run(bench: Run) -> list[Row]:
    runs: list[dict[str, float]] = []
    probes = [bench.probe()]
    for _ in range(bench.pairs):
        runs.append(_measure(bench))
        probes.append(bench.probe())
    p95s = {name: median(one[name] for one in runs) for name in runs[0]}
    slowest = max(p95s, key=lambda name: p95s[name])
    worst = [one[slowest] for one in runs]
    others = ", ".join(
        f"{name} {p95s[name]:.1f}" for name in sorted(p95s, key=lambda name: -p95s[name]) if name != slowest
    )
    return [
        Row(
            what=f"console, p95 of a page, the slowest of {len(p95s)}",
            population=f"P1, catcher with {_CAUGHT} messages",
            figure=f"{slowest} {p95s[slowest]:.1f} ms ({others})",
            limit=f"{median(probes):.2f} ms",
            spread=f"±{(max(worst) - min(worst)) / 2 / median(worst):.0%}",
            bar=GOAL.bar_text(" ms"),
            aim=GOAL.aim_text(" ms"),
            verdict=refusal(probes) or GOAL.verdict(p95s[slowest]),
        )
    ]


def _measure(bench: Run) -> dict[str, float]:
    """The p95 of each page, in milliseconds."""
    with bench.copy_of() as population, noroshi_on(population, channel="catcher") as server:
        server.load(clients=4, mark="seen", requests=_CAUGHT, only=reachable_users(_CAUGHT))
        server.wait_until_decided()
        browser = _Browser(server)
        return {name: browser.p95_ms(path, int(bench.pick(60, 300))) for name, path in _pages(server).items()}


def _pages(server: Noroshi) -> dict[str, str]:
    batch_id = server.population.last_batch
    batch, one = show(batch_id), show(notification_id(batch_id, 0, 0))
    return {
        "activity": "/console",
        "catcher": "/console/catcher",
        "batch": f"/console/batches/{batch}",
        "notification": f"/console/batches/{batch}/{one}",
        "people": "/console/people",
        "person": f"/console/people/{user_id(reachable_users(1)[0])}",
        "templates": "/console/templates",
        "template": "/console/templates/bench-note",
        "dead letters": "/console/dead-letters",
        "health": "/console/health",
    }


class _Browser:
    def __init__(self, server: Noroshi) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        origin = f"http://127.0.0.1:{server.port}"
        form = urlencode({"key": server.population.key})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
        self._connection.request("POST", "/console/login", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = str(answer.headers["set-cookie"]).split(";", maxsplit=1)[0]

    def p95_ms(self, path: str, count: int) -> float:
        for _ in range(_WARM_UP):
            self._get(path)
        return percentile([self._get(path) for _ in range(count)], 0.95) * 1000

    def _get(self, path: str) -> float:
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - began
        if answer.status != 200:
            raise BenchError(f"{path} was answered with {answer.status}")
        return seconds
