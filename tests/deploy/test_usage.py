"""What translation costs: recording rules, by promtool, for servers that come, restart and stop."""

from pathlib import Path

import pytest

from tests.deploy.deployed import RULES, Series, promtool, read

PER_CPU = "dragoman:source_codepoints:per_cpu_second1h"
BY_KEY = "dragoman:key_source_characters:increase1h"


def pod(metric: str, values: str, name: str = "a", **labels: str) -> dict[str, str]:
    given = {"job": "dragoman", "namespace": "p", "deployment": "d", "instance": name, **labels}
    told = ",".join(f'{label}="{value}"' for label, value in given.items())
    return {"series": f"{metric}{{{told}}}", "values": values}


def characters(values: str, name: str = "a", key: str = "shop") -> dict[str, str]:
    return pod("dragoman_key_source_characters_total", values, name, key=key)


def told(folder: Path, series: Series, expression: str, expected: dict[str, float]) -> str:
    """Return what promtool says if a rule, after an hour of samples each minute, has not these values by labels."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    return promtool(f"round({expression})", [(series, samples)], 60, folder, [RULES / "usage.yml"], "1m")


DEPLOYMENT = '{job="dragoman",namespace="p",deployment="d"}'
OTHER = '{job="dragoman",namespace="p",deployment="e"}'
SHOP = '{job="dragoman",namespace="p",key="shop"}'
APP = '{job="dragoman",namespace="p",key="app"}'


def texts(values: str, name: str = "a", **labels: str) -> dict[str, str]:
    return pod("dragoman_source_codepoints_total", values, name, **({"model": "m"} | labels))


def cpu(values: str, name: str = "a", **labels: str) -> dict[str, str]:
    return pod("process_cpu_seconds_total", values, name, **labels)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param([texts("0+6000x60"), cpu("0+30x60")], {DEPLOYMENT: 200.0}, id="one server"),
        pytest.param(
            [texts("0+6000x60"), texts("0+3000x60", model="n"), cpu("0+30x60")],
            {DEPLOYMENT: 300.0},
            id="two models on one server share its CPU",
        ),
        pytest.param(
            [
                *(texts("0+6000x60"), cpu("0+30x60")),
                *(texts("0+100x60", "b", deployment="e"), cpu("0+10x60", "b", deployment="e")),
            ],
            {DEPLOYMENT: 200.0, OTHER: 10.0},
            id="pools apart",
        ),
        pytest.param([texts("0+6000x60"), cpu("0x60")], {}, id="no CPU time, no number"),
        pytest.param([cpu("0+30x60", job="other")], {}, id="somebody else's process"),
    ],
)
def test_characters_per_cpu_second(tmp_path: Path, series: Series, expected: dict[str, float]) -> None:
    assert told(tmp_path, series, PER_CPU, expected) == ""


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param([characters("0+100x60")], {SHOP: 6000.0}, id="an hour"),
        pytest.param([characters("0+100x60"), characters("0+50x60", "b")], {SHOP: 9000.0}, id="two servers"),
        pytest.param([characters("0+100x29 0+100x30")], {SHOP: 5900.0}, id="a restart loses less than a scrape"),
        pytest.param([characters("0x60"), characters("7+1x60", key="app")], {SHOP: 0.0, APP: 60.0}, id="keys apart"),
    ],
)
def test_characters_by_key(tmp_path: Path, series: Series, expected: dict[str, float]) -> None:
    assert told(tmp_path, series, BY_KEY, expected) == ""


def test_a_wrong_number_is_caught(tmp_path: Path) -> None:
    assert "5.999E+03" in told(tmp_path, [characters("0+100x60")], BY_KEY, {SHOP: 5999.0})


def test_each_rule_of_usage_is_tested_here() -> None:
    groups = read(RULES / "usage.yml")["groups"]
    assert {rule["record"] for group in groups for rule in group["rules"]} == {PER_CPU, BY_KEY}
