"""The prohibitions of the specification (S1 10, L9), held by the code's own imports and calls."""

import ast
import re
from collections.abc import Iterator

import pytest
import yaml

from noroshi.domain.notification_jobs import DisplayState, JobKind
from noroshi.domain.reservations import ReminderPolicy
from tests.architecture.test_imports import ours
from tests.architecture.tree import PACKAGE, ROOT, Module, modules

SENDER = "reservations.sender"
RESERVATIONS = [one for one in modules() if one.name.split(".")[0] == "reservations"]
THEIR_DOORS = [
    one
    for one in modules()
    if re.match(r"entrypoints\.(api\.(reservation|shop)|shop_pages|cli\.(reservations|shop))", one.name)
]
BEHIND_THE_SCENES = {
    "create_task",
    "ensure_future",
    "TaskGroup",
    "gather",
    "call_soon",
    "call_later",
    "call_at",
    "call_soon_threadsafe",
    "run_in_executor",
    "to_thread",
    "Thread",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "BackgroundTask",
    "BackgroundTasks",
    "add_task",
    "fork",
    "Popen",
}


def attributes(module: Module, name: str) -> list[ast.Attribute]:
    return [node for node in ast.walk(module.syntax) if isinstance(node, ast.Attribute) and node.attr == name]


def functions_using(module: Module, text: str) -> set[str]:
    """The innermost functions whose code has this expression."""
    found: dict[int, str] = {}
    for function in ast.walk(module.syntax):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.expr) and ast.unparse(node) == text:
                    found[id(node)] = function.name  # the walk goes inwards: the last one stands
    return set(found.values())


def test_the_walk_finds_the_domain_and_its_doors() -> None:
    assert {SENDER, "reservations.shop", "reservations.scheduling"} <= {one.name for one in RESERVATIONS}
    assert {"entrypoints.api.reservation_jobs", "entrypoints.cli.reservations"} <= {one.name for one in THEIR_DOORS}


@pytest.mark.parametrize("module", RESERVATIONS, ids=lambda module: module.name)
def test_nothing_but_the_sender_reaches_line(module: Module) -> None:
    # L9, S1 10: neither the API nor any other part of the domain calls LINE
    reaches = {name for name in ours(module) if name.endswith(".line")}
    pushes = [node for node in ast.walk(module.syntax) if isinstance(node, ast.Attribute) and node.attr == "push"]
    if module.name == SENDER:
        assert reaches == {"ports.line", "domain.line"}
        assert len(pushes) == 1
    else:
        assert not reaches
        assert not pushes


@pytest.mark.parametrize("module", THEIR_DOORS, ids=lambda module: module.name)
def test_no_door_reaches_line_either(module: Module) -> None:
    # L9; the play shows what LINE would get, on the terminal
    assert not {name for name in ours(module) if name == "ports.line"}
    if module.name != "entrypoints.cli.shop_play":
        assert not attributes(module, "push")


@pytest.mark.parametrize("module", [*RESERVATIONS, *THEIR_DOORS], ids=lambda module: module.name)
def test_nothing_is_done_behind_the_scenes(module: Module) -> None:
    # L9, S1 10: no background task or worker sends
    used = {node.attr for node in ast.walk(module.syntax) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(module.syntax) if isinstance(node, ast.Name)}
    assert not used & BEHIND_THE_SCENES


def test_only_the_senders_result_makes_a_job_sent() -> None:
    # S1 10: nothing else sets SENT
    naming = {
        f"{module.name}:{function}"
        for module in modules()
        for function in functions_using(module, "JobStatus.SENT")
        if module.name != "domain.notification_jobs"
    }
    assert naming == {"storage.notification_jobs:work"}
    recording = {module.name for module in modules() if any(_records(module))}
    assert recording == {SENDER}


def _records(module: Module) -> Iterator[ast.Attribute]:
    return (node for node in attributes(module, "record") if ast.unparse(node.value).endswith("jobs"))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_statement_says_sent_by_itself(store: str) -> None:
    # S1 10: the status is always the one that `record` decided
    for path in (PACKAGE / "storage" / store / "queries").glob("*.sql"):
        for block in path.read_text(encoding="utf-8").split("-- name: ")[1:]:
            assert "'SENT'" not in block, block.splitlines()[0]
            if re.search(r"UPDATE notification_jobs", block):
                assert block.split()[0] in {"write_job", "fail_doubtful_jobs"}


def test_a_failed_job_is_sent_again_only_when_a_person_asks() -> None:
    # S1 5, 10: no automatic resend
    asking = {
        f"{module.name}:{call.keywords}"
        for module in modules()
        for call in ast.walk(module.syntax)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg == "is_asked" and isinstance(word.value, ast.Constant) and word.value.value is True
    }
    assert {one.partition(":")[0] for one in asking} == {SENDER}
    sender = next(one for one in RESERVATIONS if one.name == SENDER)
    assert functions_using(sender, "self._send(tenant, job_id, holder, is_asked=True)") == {"send_single_job"}
    callers = {one.name for one in modules() if attributes(one, "send_single_job")}
    assert callers - {"reservations.shop"} == {
        "entrypoints.api.reservation_jobs",
        "entrypoints.cli.shop_play",
        "entrypoints.shop_pages.admin",
    }


def test_the_sender_runs_where_the_specification_has_it_run_and_nowhere_else() -> None:
    # L9: cron, the one attempt after jobs were made, and a person's command; the play is a shop of its own
    assert callers_of("send_pending_jobs") == {
        "entrypoints.api.reservation_jobs:send_pending",
        "entrypoints.cli.reservations:work",
        "entrypoints.cli.shop_play:play_day",
        "entrypoints.shop_pages.admin:send_pending",
        "reservations.shop:send_pending_jobs",
    }
    assert callers_of("send_initially") == {"reservations.shop:_attempt"}
    assert callers_of("_attempt", "reservations.") == {
        "reservations.shop:schedule_for_reservation",
        "reservations.shop:schedule_cancel_completed",
    }


def callers_of(name: str, under: str = "") -> set[str]:
    """The functions in which this attribute is used, over all modules."""
    return {
        f"{module.name}:{function}"
        for module in modules()
        if module.name.startswith(under)
        for used in attributes(module, name)
        for function in functions_using(module, ast.unparse(used)) or {"outside of functions"}
    }


def test_one_place_says_when_a_pickup_begins_and_ends() -> None:
    # L14: everything else asks for event_start and event_end
    for module in RESERVATIONS:
        for name in ("pickup_start", "pickup_end"):
            assert not attributes(module, name), module.shown


def test_japanese_time_is_for_people_and_for_the_slots_alone() -> None:
    # L2, S1 4.3: nothing else in the domain knows a zone
    knowing = {one.name for one in RESERVATIONS if "domain.japan" in set(ours(one))}
    assert knowing == {"reservations.reminders", "reservations.context"}
    for one in RESERVATIONS:
        assert not any(isinstance(node, ast.ImportFrom) and node.module == "zoneinfo" for node in ast.walk(one.syntax))


def test_every_sentence_of_the_specification_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "reservations.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(named) > 40
    assert named - there == set()


def test_both_pages_of_the_docs_know_every_state_and_kind() -> None:
    for name in ("reservations.md", "reservations.ja.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for word in (*DisplayState, *JobKind, *ReminderPolicy):
            assert word in page, (name, word)


def test_cron_comes_every_minute_by_each_of_its_three_ways() -> None:
    # L10
    folder = ROOT / "deploy" / "reservations"
    command = "-m noroshi.reservations.cron"
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    (line,) = [line for line in texts["crontab"].splitlines() if command in line]
    assert line.startswith("* * * * * ")
    assert f"ExecStart=python3 {command}" in texts["noroshi-reservations.service"]
    assert "OnCalendar=*-*-* *:*:00" in texts["noroshi-reservations.timer"]
    assert "NOTIFICATION_CRON_DRY_RUN=false" in texts["crontab"].splitlines()
    cronjob = yaml.safe_load(texts["cronjob.yaml"])
    assert (cronjob["kind"], cronjob["spec"]["schedule"]) == ("CronJob", "* * * * *")
    pod = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python3", "-m", "noroshi.reservations.cron"]
    values = {one["name"]: one["value"] for one in container["env"]}
    assert values["NOTIFICATION_CRON_DRY_RUN"] == "false"
    # a run that kills and repeats a pod by itself would be a second sender beside the next minute's
    assert (pod["restartPolicy"], cronjob["spec"]["jobTemplate"]["spec"]["backoffLimit"]) == ("Never", 0)
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
