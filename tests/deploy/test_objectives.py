"""Objectives by method and Deployment: for each method of each API, what must wake somebody does, and nothing else."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from service.observe.table import REQUEST_BUCKETS
from tests.call_kinds import KINDS, NOT_TRANSLATING, TRANSLATING
from tests.deploy.deployed import RULES, Samples, Series, promtool, rules

MINUTES = 76
STEP_MINUTES = 2  # between evaluations of rules: twice as many take twice as long
FAILED = ("DragomanFailuresFast", "DragomanFailures", "DragomanFailuresSlow")
SLOW = ("DragomanSlowCallsFast", "DragomanSlowCalls", "DragomanSlowCallsSlow")
FIRING = 'count by (alertname, deployment, method) (ALERTS{alertname=~".*(Failures|SlowCalls).*",alertstate="firing"})'
TIMED = [method for method, kind in KINDS.items() if kind == "translate"]
SOME = [methods[0] for methods in TRANSLATING.values()]

# Numbers are calls a minute.
BUSY, QUIET = 60.0, 0.05  # quiet: four in all


def calls(
    methods: Iterable[str],
    deployment: str = "small",
    *,
    ok: float = 0.0,
    slow: float = 0.0,
    codes: Mapping[str, float] | None = None,
    refused: Mapping[str, float] | None = None,
    kind: str = "",
) -> Series:
    """Return the series of methods, of which so many calls a minute end OK, of these slowly, in other codes, or are
    refused for a reason."""
    return [
        {"series": f"{name}{{{labels}}}", "values": f"0+{rate * STEP_MINUTES}x{MINUTES // STEP_MINUTES}"}
        for method in methods
        for name, labels, rate in _rates(
            method, kind or KINDS[method], deployment, ok, slow, codes or {}, refused or {}
        )
    ]


def _rates(
    method: str,
    kind: str,
    deployment: str,
    ok: float,
    slow: float,
    codes: Mapping[str, float],
    refused: Mapping[str, float],
) -> Iterator[tuple[str, str, float]]:
    of = f'job="dragoman",namespace="mt",deployment="{deployment}",pool="{deployment}",instance="{deployment}:9464"'
    of = f'{of},method="{method}",kind="{kind}"'
    by_code = {"OK": ok, **codes, **({"RESOURCE_EXHAUSTED": sum(refused.values())} if refused else {})}
    for code, rate in by_code.items():
        yield "dragoman_requests_total", f'{of},code="{code}"', rate
    for reason in {"queue_full", "memory_full", *refused}:
        yield "dragoman_rejected_total", f'{of},reason="{reason}"', refused.get(reason, 0.0)
    yield "dragoman_request_duration_seconds_count", f'{of},code="OK"', ok
    yield "dragoman_request_duration_seconds_bucket", f'{of},code="OK",le="1.0"', ok - slow


def alerts(names: Iterable[str], methods: Iterable[str]) -> Samples:
    return [
        {"labels": f'{{alertname="{name}",deployment="small",method="{method}"}}', "value": 1}
        for name in names
        for method in methods
    ]


# Beside a pool that is much larger, and well.
LARGE = calls(["http/openai/responses", "http/v1/files"], "large", ok=1000 * BUSY)
OTHERS = sorted(NOT_TRANSLATING)[::20]
CASES: dict[str, tuple[Series, Samples]] = {
    "busy and well": (calls(KINDS, ok=BUSY), []),
    "half fail": (calls(KINDS, ok=BUSY, codes={"INTERNAL": BUSY}), alerts(FAILED, KINDS)),
    "nothing works, and nothing ever did": (calls(SOME, codes={"UNAVAILABLE": BUSY}), alerts(FAILED, SOME)),
    "half find the queue full": (calls(SOME, ok=BUSY, refused={"queue_full": BUSY}), alerts(FAILED, SOME)),
    "half find the memory full": (calls(SOME, ok=BUSY, refused={"memory_full": BUSY}), alerts(FAILED, SOME)),
    "half have used up their quota": (calls(SOME, ok=BUSY, refused={"quota": BUSY}), []),
    "half are wrong or cancelled": (calls(SOME, ok=BUSY, codes={"INVALID_ARGUMENT": BUSY, "CANCELLED": BUSY}), []),
    "one in two thousand fails": (calls(SOME, ok=1999 * BUSY, codes={"INTERNAL": BUSY}), []),
    "a quiet night's calls fail": (calls(SOME, ok=QUIET, codes={"INTERNAL": QUIET}), []),
    "half are slow": (calls(KINDS, ok=BUSY, slow=BUSY / 2), alerts(SLOW, TIMED)),
    "a quiet night's calls are slow": (calls(SOME, ok=QUIET, slow=QUIET), []),
    "what does not translate fails": (
        calls(OTHERS, ok=BUSY, slow=BUSY, codes={"INTERNAL": BUSY}, refused={"memory_full": BUSY}, kind="other"),
        [],
    ),
    "one API of a pool fails": (
        [
            *calls([TIMED[0]], ok=BUSY),
            *calls(["http/openai/responses"], ok=BUSY / 100, codes={"INTERNAL": BUSY / 100}),
        ],
        alerts(FAILED, ["http/openai/responses"]),
    ),
}


def answered(query: str, cases: Iterable[tuple[Series, Samples]], folder: Path, rules: Path = RULES) -> str:
    files = sorted(rules.glob("*.yml"), reverse=True)  # slo.yml first, which the alerts read
    return promtool(query, cases, MINUTES, folder, files, f"{STEP_MINUTES}m")


def told(folder: Path, rules: Path, *names: str) -> str:
    """Return what promtool says of the cases whose alerts are not the expected ones."""
    return answered(FIRING, [(CASES[name][0] + LARGE, CASES[name][1]) for name in names], folder, rules)


def test_alerts_are_those_of_the_methods_and_pools_in_trouble(tmp_path: Path) -> None:
    assert told(tmp_path, RULES, *CASES) == ""


@pytest.mark.parametrize(
    ("right", "wrong", "case"),
    [
        pytest.param('kind!="other"', 'job="dragoman"', "what does not translate fails", id="too many calls"),
        pytest.param("queue_full|memory_full", "queue_full", "half find the memory full", id="a reason is missing"),
    ],
)
def test_a_rule_that_counts_other_calls_is_caught(right: str, wrong: str, case: str, tmp_path: Path) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    for path in (tmp_path / "rules").iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    assert told(tmp_path, tmp_path / "rules", case)


def test_what_is_recorded(tmp_path: Path) -> None:
    """In one window, from which the others differ in their length only."""
    busy, quiet = "http/openai/chat_completions", "http/v1/translate"
    series = calls([busy], ok=60.0, slow=15.0, codes={"INTERNAL": 10.0}, refused={"memory_full": 5.0, "quota": 5.0})

    def of_all(kind: str) -> str:
        names = f"dragoman:calls_[a-z]+:{kind}30m"
        return f'sum by (rule, method) (label_replace({{__name__=~"{names}"}}, "rule", "$1", "__name__", "(.+)"))'

    rates = {"ok:rate": 60, "failed:rate": 15, "timed:rate": 60, "slow:rate": 15}
    numbers: dict[tuple[str, str], float] = {
        **{(busy, name): rate for name, rate in rates.items()},
        **{(quiet, name): 0 for name in rates},  # and no ratios
        (busy, "failed:ratio_rate"): 0.2,
        (busy, "slow:ratio_rate"): 0.25,
    }
    samples: Samples = [
        {"labels": f'{{method="{method}",rule="dragoman:calls_{name}30m"}}', "value": number}
        for (method, name), number in numbers.items()
    ]
    query = f"round({of_all('rate')} * 60, 1) or round({of_all('ratio_rate')}, 0.01)"
    assert answered(query, [(series + calls([quiet]), samples)], tmp_path) == ""


def test_windows_differ_in_nothing_but_their_length() -> None:
    by_name: dict[str, set[str]] = {}
    for rule in rules("record"):
        if found := re.fullmatch(r"(.+rate)(\d\w+)", rule["record"]):
            name, window = found.groups()
            by_name.setdefault(name, set()).add(re.sub(rf"(rate|\[){window}\b", r"\1", rule["expr"]))
    assert {name: len(forms) for name, forms in by_name.items()} == dict.fromkeys(by_name, 1)
    assert len(by_name) == 6


def test_objectives_are_set_in_one_place_and_latency_has_a_bucket() -> None:
    (seconds,) = (rule["expr"] for rule in rules("record") if rule["record"] == "dragoman:objective:slow_seconds")
    bounds = [bound for rule in rules("record") for bound in re.findall(r'le="([^"]+)"', rule["expr"])]
    assert [f"vector({bound})" for bound in bounds] == [seconds]
    assert float(bounds[0]) in REQUEST_BUCKETS
    for name in ("failed", "slow"):
        own = [rule["expr"] for rule in rules("alert") if f"calls_{name}" in rule["expr"]]
        assert len(own) == 3
        assert all(f"scalar(dragoman:objective:{name}_ratio)" in expression for expression in own)
        assert not any(re.search(r"0\.0\d", expression) for expression in own)
