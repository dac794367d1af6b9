import pytest

from benchmarks.static_server import make_static
from service.domain.options import DecodingOptions
from service.engine import worker
from service.engine.sequence import Sequence

OPTIONS = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=4)


def test_static_batching_admits_nobody_while_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "schedule", worker.__dict__["schedule"])  # restored after the test
    waiting = [Sequence((5, 2), OPTIONS, 0.0) for number in range(3)]
    schedule = worker.__dict__["schedule"]
    assert len(schedule(waiting, 7, 100, 9, pads=True).admitted) == 3
    make_static()
    schedule = worker.__dict__["schedule"]
    assert len(schedule(waiting, 8, 100, 9, pads=True).admitted) == 3
    assert schedule(waiting, 7, 100, 9, pads=True).admitted == ()
    assert len(schedule(waiting, 8, 100, 9, pads=True).admitted) == 3
