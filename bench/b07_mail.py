"""B7: e-mail a second, the whole way through the engine to a sink, against aiosmtplib with email.message, and against
smtp-source, which sends one and the same text, where Postfix is to be had."""

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
from tests.services.installation import ServiceMissingError
from tests.services.postfix import PostfixTools, find_postfix

from bench.cast import TEMPLATE
from bench.counts import WrongCountError, check_counts
from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.generator import Report
from bench.mail_sink import CONNECTIONS, Sink, open_sink
from bench.mail_texts import HTML, SENDER, SUBJECT, TEXT
from bench.population import Population, one_number
from bench.processes import Usage
from bench.run import Run
from bench.server import BenchError, Noroshi, noroshi_on, spawn

GOAL = Goal(bar=5, aim=20)
OF_SOURCE = Goal(bar=None, aim=0.3)

LETTER_BYTES = 1_480
"""Of one of ours with its headers: the source, which has no text of its own, sends as many."""

SOURCE_HEADERS = 136
"""Of them are headers that it writes by itself."""


def run(bench: Run) -> list[Row]:
    recipients = int(bench.pick(25_000, 100_000))
    against_peer: list[Pair] = []
    against_source: list[Pair] = []
    count, sink_name = 0, ""
    tools, missing = _tools()
    for _ in range(bench.pairs):
        with bench.copy_of() as population, open_sink(bench.folder, tools) as sink:
            sink_name = sink.name
            reports, count = _fill(population, sink, recipients)
            peer = _peer(sink, count // 10)
            source = None if tools is None else _source(tools, sink, count)
            ours = _drain(population, sink, reports, count)
            _check_sink(sink, count + count // 10 + (count if source else 0))
        against_peer.append(Pair(ours, peer))
        if source is not None:
            against_source.append(Pair(ours, source))
    population_name = f"P1, {count:,} letters, text and HTML, to {sink_name}"
    return [
        ratio_row("B7 e-mail ÷ aiosmtplib + email.message", population_name, "letters", against_peer, GOAL),
        source_row(population_name, against_source, missing),
    ]


def _tools() -> tuple[PostfixTools | None, str]:
    """Or why there are none, in one line."""
    try:
        return find_postfix(), ""
    except ServiceMissingError as why:
        return None, str(why)


def source_row(population: str, pairs: Sequence[Pair], missing: str = "") -> Row:
    what = "B7 e-mail ÷ smtp-source, the same connections"
    if not pairs:
        return Row(what=what, population=population, figure="", verdict=f"not judged: {missing}")
    return ratio_row(what, population, "letters", pairs, OF_SOURCE)


def _fill(population: Population, sink: Sink, recipients: int) -> tuple[list[Report], int]:
    """Letters that wait, put there by the product itself under a pause, which stays when it stops."""
    with _noroshi(population, sink) as server:
        for locale in ("en", "ja"):
            _write_template(server, locale)
        server.pause()
        server.load(clients=2, mark="mail", requests=recipients // 5_000, recipients=5_000)
        server.wait_until_decided()
        return server.reports, one_number(server.reader(), "SELECT count(*) FROM deliveries")


def _noroshi(population: Population, sink: Sink) -> AbstractContextManager[Noroshi]:
    relay = {
        "NOROSHI_SMTP_URL": f"smtp://127.0.0.1:{sink.port}",
        "NOROSHI_SMTP_FROM": SENDER,
        "NOROSHI_SMTP_CONNECTIONS": str(CONNECTIONS),
    }
    return noroshi_on(population, channel="smtp", more=relay)


def _write_template(server: Noroshi, locale: str) -> None:
    body = {"channel": "email", "locale": locale, "subject": SUBJECT, "body": TEXT, "metadata": {"html_body": HTML}}
    path = f"/api/v1/templates/{TEMPLATE}"
    status, _ = server.ask("POST", path, server.population.key, msgspec.json.encode(body))
    if status != 201:
        raise BenchError(f"the template was answered with {status}")


def _drain(population: Population, sink: Sink, reports: list[Report], count: int) -> Measured:
    with _noroshi(population, sink) as server:
        server.reports += reports
        server.find_pause()
        used, began = server.cpu(), time.perf_counter()
        server.resume()
        server.wait_until_quiet()
        seconds = time.perf_counter() - began
        ours = measured(count, seconds, usage=server.cpu().since(used), memory=server.memory())
        check_counts(server, is_drained=True, account="smtp")
    return ours


def _peer(sink: Sink, count: int) -> Measured:
    process = spawn(["bench.mail_peer", str(sink.port), str(count), str(CONNECTIONS)], {}, stdout=subprocess.PIPE)
    output, _ = process.communicate()
    if process.returncode != 0:
        raise BenchError("the peer failed: see above")
    seconds, used = map(float, output.split())
    return measured(count, seconds, usage=Usage(used, 0.0))


def _source(tools: PostfixTools, sink: Sink, count: int) -> Measured:
    how = ["-d", "-s", str(CONNECTIONS), "-m", str(count), "-l", str(LETTER_BYTES - SOURCE_HEADERS)]
    before, began = os.times(), time.perf_counter()
    people = ["-f", "shop@noroshi.example", "-t", "person@example.com"]
    command = tools.command("smtp-source", *how, *people, f"127.0.0.1:{sink.port}")
    subprocess.run(command, env=tools.environment, check=True)
    seconds, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return measured(count, seconds, usage=Usage(used, 0.0))


def _check_sink(sink: Sink, wanted: int) -> None:
    taken = sink.close()
    if taken != wanted:
        raise WrongCountError(f"the sink took {taken} letters, not {wanted}")
