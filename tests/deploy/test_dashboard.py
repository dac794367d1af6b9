"""Every panel of the dashboard, answered by a real Prometheus that scrapes a real server under load."""

import contextlib
import json
import math
import re
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from benchmarks.prometheus import Prometheus, QueryError, scraping
from deploy.grafana import build
from dragoman_client import ClientError
from tests.deploy.deployed import ONLY_WITH_TLS, all_panels, expressions, known_metrics, metric_names, rules
from tests.key_files import ALICE, write_keys
from tests.servers import InProcessServer, Serve, distinct_texts, eventually
from tests.tools import tool

PANELS = all_panels()
# Events of these kinds do not occur in these tests' server.
EMPTY_HERE = {"Certificate", "Evicted while running", "Flagged segments"}
WINDOW = "15s"
LINE = {"mode": "line"}


@pytest.fixture(scope="module")
def prometheus(share: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus that has scraped a server, which is under load until the tests end."""
    program = tool("prometheus", "prometheus")
    keys = write_keys(tmp_path_factory.mktemp("keys"), alice=ALICE)
    server, done = share(cache_mib=1, api_keys=keys), threading.Event()
    load = threading.Thread(target=_load, args=(server, done))
    load.start()
    try:
        with scraping(f"127.0.0.1:{server.server.metrics_port}", program=program) as running:
            for window in ("5m", "1h"):  # each group of rules has moments of its own
                for kind in ("slow", "failed"):
                    eventually(partial(_has_data, running, f"dragoman:calls_{kind}:ratio_rate{window}"))
            eventually(lambda: _has_data(running, 'rate(dragoman_requests_total{code="INVALID_ARGUMENT"}[5s])'))
            yield running
    finally:
        done.set()
        load.join()


def _load(server: InProcessServer, done: threading.Event) -> None:
    with server.client(api_key=ALICE) as client:
        while not done.wait(0.1):
            for texts in (distinct_texts(4), ["Hello"]):
                client.translate(texts, "en", "de")
            with contextlib.suppress(ClientError):
                client.translate([], "en", "de")


def _has_data(prometheus: Prometheus, expression: str) -> bool:
    return any(not math.isnan(float(series["value"][1])) for series in prometheus.query(expression))


def problem(prometheus: Prometheus, panel: dict[str, Any]) -> str:
    """Return what is wrong with a panel; empty if nothing is."""
    has_data = False
    names: set[str] = set()
    for expression, target in zip(expressions(panel, window=WINDOW, shown="1m"), panel["targets"], strict=True):
        names |= metric_names(expression)
        try:
            found = prometheus.query(expression)
        except QueryError as error:
            return str(error)
        wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        if any(not wanted <= series["metric"].keys() for series in found):
            return f"the legend wants {wanted}"
        has_data |= _has_data(prometheus, expression)
    expected = panel["title"] not in EMPTY_HERE and not names <= ONLY_WITH_TLS
    return "" if has_data or not expected else "no data"


def test_every_panel_has_data(prometheus: Prometheus) -> None:
    problems = {panel["title"]: problem(prometheus, panel) for panel in PANELS}
    assert not {title: text for title, text in problems.items() if text}


@pytest.mark.parametrize(
    ("title", "right", "wrong", "said"),
    [
        pytest.param("Calls by method", "requests_total", "request_total", "no data", id="metric"),
        pytest.param("Calls by method", "sum by (method)", "sum by (code)", "the legend wants", id="legend"),
    ],
)
def test_a_fault_in_a_panel_is_caught(prometheus: Prometheus, title: str, right: str, wrong: str, said: str) -> None:
    (panel,) = [panel for panel in PANELS if panel["title"] == title]
    assert not problem(prometheus, panel)
    assert said in problem(prometheus, json.loads(json.dumps(panel).replace(right, wrong)))


def test_a_model_that_has_cut_nothing_short_has_a_share(prometheus: Prometheus) -> None:
    (panel,) = [panel for panel in PANELS if panel["title"] == "Cut short by version"]
    assert not problem(prometheus, json.loads(json.dumps(panel).replace("length|ratio|repetition", "none of these")))


def colour(panel: dict[str, Any], series: str, value: float) -> str:
    """Return the colour in which Grafana shows the value of a series."""
    config = panel["fieldConfig"]
    steps = config["defaults"]["thresholds"]["steps"]
    for override in config["overrides"]:
        if override["matcher"] == {"id": "byName", "options": series}:
            steps = override["properties"][0]["value"]["steps"]
    return [str(step["color"]) for step in steps if step["value"] is None or value >= step["value"]][-1]


@pytest.mark.parametrize(("title", "series"), [("Availability", "available"), ("Calls on time", "on time")])
def test_all_calls_ok_is_green_and_a_budget_that_is_used_up_red(title: str, series: str) -> None:
    (panel,) = [panel for panel in PANELS if panel["title"] == title]
    assert [target["legendFormat"] for target in panel["targets"]] == [series, "budget used"]
    colours = [colour(panel, *each) for each in ((series, 1.0), ("budget used", 0.9), ("budget used", 1.0))]
    assert colours == ["green", "green", "red"]


def test_every_rule_is_healthy(prometheus: Prometheus) -> None:
    eventually(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
    assert len(prometheus.rules()) == len(rules("alert")) + len(rules("record"))


def test_variables_offer_what_there_is(prometheus: Prometheus) -> None:
    variables = {each["name"]: each for each in build.dashboard()["templating"]["list"]}
    for name, count in (("instance", 1), ("model", 1)):
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variables[name]["query"]).groups()  # type: ignore[union-attr]
        found = prometheus.query(re.sub(r"\$\w+", ".*", selector))
        assert len({series["metric"][label] for series in found}) == count


def test_the_json_is_what_the_panels_make() -> None:
    assert build.DASHBOARD.read_text(encoding="utf-8") == build.text(), "run python -m deploy.grafana.build"


def test_panels_read_metrics_that_exist() -> None:
    for panel in PANELS:
        for expression in expressions(panel, window=WINDOW, shown="1m"):
            assert metric_names(expression) <= known_metrics(), panel["title"]


def test_panels_are_told_apart_and_do_not_overlap() -> None:
    dashboard = build.dashboard()
    everything = dashboard["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    cells = [
        (x, y)
        for panel in everything
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert all(panel["description"] and panel["fieldConfig"]["defaults"]["unit"] for panel in PANELS)


def test_links_lead_to_runbooks_of_alerts() -> None:
    anchors = {f"${{runbooks}}#{rule['alert'].lower()}" for rule in rules("alert")}
    links = {link["url"] for panel in PANELS for link in panel.get("links", [])}
    assert links
    assert links <= anchors


def test_the_line_of_a_panel_is_the_threshold_of_its_alert() -> None:
    expressions = {f"${{runbooks}}#{rule['alert'].lower()}": rule["expr"] for rule in rules("alert")}
    drawn = [panel for panel in PANELS if panel["fieldConfig"]["defaults"]["custom"].get("thresholdsStyle", {}) == LINE]
    assert len(drawn) > 10
    for panel in drawn:
        (link,) = panel["links"]
        bounds = re.findall(r"[<>] ([\d.]+)(?: \* (\d+))?", expressions[link["url"]])
        thresholds = {float(bound) * float(factor or 1) for bound, factor in bounds}
        steps = {step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]}
        assert steps & thresholds, panel["title"]
