"""The gate of a canary: what it answers, by a real Prometheus, of canaries that are good, bad, or hardly called."""

import json
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from benchmarks.prometheus import scraping
from dragoman_client import Client
from tests.deploy.deployed import DEPLOY, Series, known_metrics, loaded, promtool
from tests.proxies import envoy
from tests.servers import REPOSITORY, ServerProcess, distinct_texts
from tests.tools import tool

FOLDER = DEPLOY / "canary"
BUNDLE = REPOSITORY / "models" / "en-de" / "1"
SHORT = 8  # tokens
MINUTE_SECONDS = 60.0
IN_A_ROW = 5  # answers, a second apart: one may be chance
CANARY, STABLE = 'deployment="canary"', 'deployment="stable"'
SPEED = "histogram_quantile(0.5, sum by (le, deployment) (rate(dragoman_model_request_duration_seconds_bucket[30s])))"
BUCKETS = ("0.005", "0.01", "0.02", "0.05", "0.1", "+Inf")


gate = loaded(FOLDER / "gate.py")


def side(
    of: str,
    calls: float = 2.0,
    failed: float = 0.0,
    cut: float = 0.0,
    flags: float = 0.0,
    under: tuple[float, ...] = (0.0, 0.6, 0.9, 1.0, 1.0, 1.0),
    length: float = 1.1,
) -> Series:
    """Return the series of a side: calls a second, the shares of failed, cut and flagged ones, the share of calls up to
    each of `BUCKETS`, and output tokens for each of the source."""
    labels = f'deployment="{of}",model="en-de",version="1"'
    rates = {
        f'dragoman_model_requests_total{{{labels},code="OK"}}': calls * (1 - failed),
        f'dragoman_model_requests_total{{{labels},code="INTERNAL"}}': calls * failed,
        f'dragoman_model_requests_total{{{labels},code="INVALID_ARGUMENT"}}': 0.3 * calls,
        f'dragoman_finish_total{{{labels},reason="stop"}}': calls * (1 - cut),
        f'dragoman_finish_total{{{labels},reason="length"}}': calls * cut,
        f'dragoman_finish_total{{{labels},reason="cancelled"}}': 0.3 * calls,
        f'dragoman_segment_flags_total{{{labels},flag="numbers"}}': calls * flags,
        f"dragoman_source_length_tokens_sum{{{labels}}}": 20 * calls,
        f"dragoman_target_length_tokens_sum{{{labels}}}": 20 * calls * length,
    }
    for bound, share in zip(BUCKETS, under, strict=True):
        rates[f'dragoman_model_request_duration_seconds_bucket{{{labels},le="{bound}"}}'] = calls * share
    return [{"series": name, "values": f"0+{15 * rate:.6f}x40"} for name, rate in rates.items()]


SLOW = (0.0, 0.1, 0.5, 0.9, 1.0, 1.0)
GOOD = side("stable", calls=18.0)
CASES: dict[str, tuple[Series, list[str]]] = {
    "a good one": (GOOD + side("canary"), []),
    "one that fails": (GOOD + side("canary", failed=0.05), ["failures"]),
    "both fail as often": (side("stable", 18.0, failed=0.05) + side("canary", failed=0.05), []),
    "a little more by chance": (side("stable", 18.0, failed=0.02) + side("canary", failed=0.035), []),
    "one that is cut short": (GOOD + side("canary", cut=0.2), ["cut short"]),
    "one that ends early": (GOOD + side("canary", length=0.6), ["lengths"]),
    "one that babbles": (GOOD + side("canary", length=1.6), ["lengths"]),
    "one that loses numbers": (GOOD + side("canary", flags=0.1), ["flags"]),
    "flags of both": (side("stable", 18.0, flags=1.4) + side("canary", flags=1.4), []),
    "one that is slow": (GOOD + side("canary", under=SLOW), ["slow"]),
    "both are slow": (side("stable", 18.0, under=SLOW) + side("canary", under=SLOW), []),
    "everything at once": (
        GOOD + side("canary", failed=0.5, cut=0.5, flags=0.5, under=SLOW, length=0.4),
        ["cut short", "failures", "flags", "lengths", "slow"],
    ),
    "hardly called": (GOOD + side("canary", calls=0.1, failed=0.5), ["too few calls"]),
    "not called": (GOOD, ["too few calls"]),
    "nothing to compare with": (side("canary"), ["too few calls"]),
}


def told(query: str, folder: Path, **cases: tuple[Series, list[str]]) -> str:
    """Return what promtool complains of: answers that are not the expected reasons."""
    samples = [
        (series, [{"labels": f'{{reason="{reason}"}}', "value": 1} for reason in reasons])
        for series, reasons in cases.values()
    ]
    return promtool(query, samples, 8, folder)


def test_what_the_gate_answers(tmp_path: Path) -> None:
    query = f"sum by (reason) (({gate.gate(CANARY, STABLE, '5m')}) * 0 + 1)"
    assert told(query, tmp_path, **CASES) == ""
    assert "failures" in told(query, tmp_path, wrong=(CASES["one that fails"][0], []))


def test_reasons_are_positive_and_too_few_calls_is_not(tmp_path: Path) -> None:
    query = f"max(({gate.gate(CANARY, STABLE, '5m')}) > 0)"
    assert "got:" in told(query, tmp_path, positive=(CASES["everything at once"][0], []))
    assert told(query, tmp_path, negative=(CASES["not called"][0], [])) == ""


@pytest.mark.parametrize("name", ["dragoman_model_requests_total", "dragoman_segment_flags_total"])
def test_its_metrics_exist(name: str) -> None:
    query = gate.gate(CANARY, STABLE, "5m")
    assert name in query
    assert set(re.findall(r"dragoman_\w+", query)) <= known_metrics()


def test_the_template_of_argo_is_as_written() -> None:
    text = (FOLDER / "analysis_template.yaml").read_text()
    assert text == gate.template(), "run python deploy/canary/gate.py --template > deploy/canary/analysis_template.yaml"
    (metric,) = yaml.safe_load(text)["spec"]["metrics"]
    query = gate.gate(" {{args.canary}}", " {{args.stable}}", "{{args.window}}")
    assert metric["provider"]["prometheus"]["query"] == query
    assert "{{{" not in query


# --- the real thing


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the shipped model as somebody released it who took the limit of outputs for one of words."""
    bundle = tmp_path_factory.mktemp("models") / "en-de" / "1"
    shutil.copytree(BUNDLE, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["limits"]["max_output_tokens"] = SHORT
    manifest["golden"] = [pair for pair in manifest["golden"] if len(pair["output_ids"]) < SHORT][:1]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    return bundle


@pytest.fixture
def canary(request: pytest.FixtureRequest) -> Path:
    """Return the bundle of a kind of canary; the slow one is not quantized."""
    if request.param == "cut short":
        bundle: Path = request.getfixturevalue("cut_short")
        return bundle
    return {"good": BUNDLE, "slow": REPOSITORY / "build" / "float32" / "en-de" / "1"}[request.param]


@pytest.mark.full
@pytest.mark.parametrize(
    ("canary", "reasons"),
    [("good", set()), ("slow", {"slow"}), ("cut short", {"cut short", "lengths"})],
    indirect=["canary"],
)
def test_a_bad_canary_is_stopped_within_a_minute(canary: Path, reasons: set[str], tmp_path: Path) -> None:
    """Behind Envoy with a tenth of the calls, and watched by Prometheus."""
    texts = distinct_texts(500)
    with ExitStack() as stack:
        servers = [stack.enter_context(ServerProcess(bundle)) for bundle in (BUNDLE, canary)]
        address = stack.enter_context(envoy(tmp_path, [server.port for server in servers], weights=(90, 10)))
        names = ("stable", "canary")
        targets = {f"127.0.0.1:{s.metrics_port}": {"deployment": name} for s, name in zip(servers, names, strict=True)}
        prometheus = stack.enter_context(scraping(targets, program=tool("prometheus", "prometheus")))
        client = stack.enter_context(Client(address))
        ends = threading.Event()
        stack.callback(ends.set)

        def call(number: int) -> None:
            while not ends.is_set():
                client.translate([texts[(number + i) % len(texts)] for i in range(4)], "en", "de")
                number += 16

        pool = stack.enter_context(ThreadPoolExecutor(4))
        stack.callback(ends.set)  # before the pool waits
        calls = [pool.submit(call, 4 * number) for number in range(4)]
        query, began, found, in_a_row = gate.gate(CANARY, STABLE, "30s"), time.monotonic(), set[str](), 0
        while time.monotonic() - began < MINUTE_SECONDS and in_a_row < IN_A_ROW:
            ends.wait(1.0)
            found = {each["metric"]["reason"] for each in prometheus.query(query)}
            in_a_row = in_a_row + 1 if found - {"too few calls"} else 0
        print(f"{sorted(found)} after {time.monotonic() - began:.0f} s; {prometheus.query(SPEED)}")
        assert not any(each.done() for each in calls)
        assert "too few calls" not in found
        assert found <= reasons if in_a_row == IN_A_ROW else not reasons
