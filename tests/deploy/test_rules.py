"""Recording rules and alerts: valid, each proved to fire and to stay quiet, each with a runbook, all metrics real."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.deployed import DEPLOY, RULE_TESTS, RULES, known_metrics, metric_names, read, rules
from tests.patience import patient
from tests.tools import tool

RUNBOOKS = DEPLOY.parent / "docs" / "runbooks.md"
ALERTS = {rule["alert"]: rule for rule in rules("alert")}
ALL_CASES = [case for path in sorted(RULE_TESTS.glob("*.yml")) for case in read(path)["tests"]]


def promtool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [tool("promtool", "prometheus"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=patient(100))


def test_configuration_and_rules_are_valid() -> None:
    checked = promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "3 rule files found" in checked.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in RULE_TESTS.glob("*.yml")))
def test_alerts_fire_and_stay_quiet_as_told(name: str) -> None:
    tested = promtool("test", "rules", RULE_TESTS / name)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    outcomes: dict[str, set[bool]] = {}
    for case in ALL_CASES:
        alert, _, told = case["name"].partition(" ")
        (asked,) = case["promql_expr_test"]
        assert f'"{alert}"' in asked["expr"], case["name"]
        assert told.startswith("fires") is bool(asked["exp_samples"]), case["name"]
        outcomes.setdefault(alert, set()).add(bool(asked["exp_samples"]))
    assert [alert for alert in ALERTS if outcomes.get(alert) != {True, False}] == []


@pytest.mark.parametrize(
    "factor", [pytest.param(30, id="too high"), pytest.param(1 / 30, id="too low", marks=pytest.mark.full)]
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=[] if path.name == "process.yml" else [pytest.mark.full])
        for path in sorted(RULE_TESTS.glob("*.yml"))
    ],
)
def test_a_threshold_that_is_off_is_caught(name: str, factor: float, tmp_path: Path) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    shutil.copytree(RULE_TESTS, tmp_path / "tests")
    alerts = tmp_path / "rules" / "alerts.yml"
    text = alerts.read_text(encoding="utf-8")
    alerts.write_text(re.sub(r" ([<>]) (?=[\d.])", rf" \1 {factor:.9f} * ", text), encoding="utf-8")
    tested = promtool("test", "rules", tmp_path / "tests" / name)
    failed = set(re.findall(r'alertname=\\"(\w+)\\"', tested.stdout + tested.stderr))
    here = {case["name"].partition(" ")[0] for case in read(RULE_TESTS / name)["tests"]}
    # Scaling such a threshold has no effect: it means "none at all", or the value is only ever 0 or 1.
    same = {alert for alert in here if re.search(r"> 0(?![.\d])(?! *\*)|< 1(?!\d)", ALERTS[alert]["expr"])}
    assert failed >= here - (same if factor < 1 else same - {"DragomanSlotsFull"})


def test_every_alert_says_what_it_must() -> None:
    for alert, rule in ALERTS.items():
        assert re.fullmatch(r"Dragoman[A-Za-z]+", alert)
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{alert.lower()}"


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    sections = re.split(r"^### (\w+)$", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    runbooks = dict(zip(sections[::2], sections[1::2], strict=True))
    assert runbooks.keys() == ALERTS.keys()
    for alert, section in runbooks.items():
        assert "**Means**" in section, alert
        assert "**Look at" in section, alert
        assert re.search(r"\*\*(Do|Done|Look at, do)\*\*", section), alert


def test_every_link_in_the_runbooks_leads_somewhere() -> None:
    text = RUNBOOKS.read_text(encoding="utf-8")
    anchors = {title.lower() for title in re.findall(r"^#+ (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= anchors
    for path in re.findall(r"\]\(([^#)]+)", text):
        assert (RUNBOOKS.parent / path).exists(), path


def test_rules_read_metrics_that_exist() -> None:
    for rule in (*rules("alert"), *rules("record")):
        names = metric_names(rule["expr"])
        assert names or re.match(r"up\{|vector\([\d.]+\)", rule["expr"])
        assert names <= known_metrics(), rule


def test_a_wrong_metric_name_is_caught() -> None:
    assert metric_names('rate(dragoman_request_total{code="dragoman_ready"}[5m])') == {"dragoman_request_total"}
    assert "dragoman_request_total" not in known_metrics()
