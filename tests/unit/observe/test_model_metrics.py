"""A model's metrics over its versions and worker processes."""

from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.observe.merging import merged
from service.observe.metrics import Metrics
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import Recorder


def engine(num_batches: int) -> Engine:
    return Engine([FakeRunner(max_slots=8) for _ in range(num_batches)], EngineConfig(), Recorder())


def batches(metrics: Metrics) -> float:
    (value,) = (sample.value for sample in metrics.samples() if sample.name == "dragoman_engine_batches")
    return value


def test_versions_share_the_cpus_so_the_batches_of_one_count() -> None:
    metrics = Metrics()
    old, new = engine(2), engine(3)
    metrics.model("m").loaded(old, 1.0)
    metrics.model("m").loaded(new, 1.0)
    assert batches(metrics) == 3
    metrics.retired("m", new)
    assert batches(metrics) == 2


def test_worker_processes_have_cpus_of_their_own_so_the_batches_of_all_count() -> None:
    workers = [Metrics(), Metrics()]
    for metrics in workers:
        metrics.model("m").loaded(engine(2), 1.0)
    families = merged([metrics.families() for metrics in workers], workers[0].rules())
    (family,) = (each for each in families if each.name == "dragoman_engine_batches")
    assert [sample.value for sample in family.samples] == [4]
