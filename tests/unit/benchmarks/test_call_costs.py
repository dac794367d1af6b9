import pytest

from benchmarks.call_costs import REST, costs, part_of

LOOP = 'thread (0x1): "MainThread"'
RUN = "run_forever (asyncio/base_events.py:600)"
CALL = "translate (service/faces/grpc/translation.py:80)"


def test_a_sample_belongs_to_the_innermost_part_that_is_known() -> None:
    assert part_of([RUN]) == "gRPC, event loop and sockets"
    assert part_of([RUN, CALL]).startswith("taking the call")
    assert part_of([RUN, CALL, "encode (service/text/tokenizers.py:50)", "encode (numpy/core.py:1)"]) == "tokenizing"
    assert part_of(["main (somewhere.py:1)", "no file"]) == REST


def test_times_are_shares_of_the_event_loops_samples() -> None:
    found = costs(
        [f"{LOOP};{RUN} 30", f"{LOOP};{RUN};{CALL} 10", "engine-0;step (service/engine/worker.py:9) 500"], 400
    )
    assert [(each["share"], each["microseconds"]) for each in found] == [(0.75, 300), (0.25, 100)]
    assert found[0]["line"] == "gRPC, event loop and sockets: 300 µs (75%)"


def test_without_the_event_loop_there_is_nothing_to_tell() -> None:
    with pytest.raises(ValueError, match="no thread named"):
        costs(["engine-0;step (service/engine/worker.py:9) 500"], 400)
