import pytest
from benchmarks.outside_client import figures_of, input_data, line

from benchmarks.cpu_times import CpuTimes

TABLE = """\
Request Rate,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,\
Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency
127.5,126.264,26,17822,6591,547,59320,243,6,63151,162753,218386,407756
"""


def test_figures_are_read_from_perf_analyzers_table() -> None:
    found = figures_of(TABLE, CpuTimes(engine=3.0, outside=1.0))
    assert found == {
        "calls_per_second": 126.264,
        "p50_ms": pytest.approx(63.151),
        "p90_ms": pytest.approx(162.753),
        "p95_ms": pytest.approx(218.386),
        "p99_ms": pytest.approx(407.756),
        "engine_share": 0.75,
    }
    assert line({"kind": "Poisson", "server_cpus": 1.5, "client_cpus": 0.25, **found}) == (
        "Poisson: 126.3 calls/s, p50 63.2, p99 407.8 ms, 75% of the CPU time in the engine, CPUs 1.50 + 0.25"
    )


def test_every_text_is_an_input_of_its_own() -> None:
    assert input_data(["a", "b"]) == {
        "data": [{"text": {"content": ["a"], "shape": [1]}}, {"text": {"content": ["b"], "shape": [1]}}]
    }
