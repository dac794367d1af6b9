"""A model's metrics over its versions."""

from service.domain.call import Call
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.observe.metrics import Metrics, ModelInfo
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
    metrics.model("m").loaded(old, "1", 1.0)
    metrics.model("m").loaded(new, "2", 1.0)
    assert batches(metrics) == 3
    metrics.retired("m", "2", new)
    assert batches(metrics) == 2


def of_versions(metrics: Metrics) -> dict[str, float]:
    return {
        sample.labels["version"]: sample.value
        for sample in metrics.samples()
        if sample.name == "dragoman_model_requests_total"
    }


def info(version: str) -> ModelInfo:
    return ModelInfo("m", version, "int8", "0", "avx2")


def test_calls_are_counted_by_version_until_it_is_retired() -> None:
    metrics = Metrics()
    old, new = engine(1), engine(1)
    metrics.model("m").loaded(old, "1", 1.0)
    metrics.serves([info("1")])
    metrics.call_finished(Call(model="m", model_version="1"))
    metrics.model("m").loaded(new, "2", 1.0)
    metrics.serves([info("2")])
    metrics.call_finished(Call(model="m", model_version="2"))
    assert of_versions(metrics) == {"1": 1, "2": 1}
    metrics.retired("m", "1", old)
    metrics.call_finished(Call(code="CANCELLED", model="m", model_version="1"))  # it was aborted
    assert of_versions(metrics) == {"2": 1}
    again = engine(1)
    metrics.model("m").loaded(again, "2", 1.0)  # other files under the same version
    metrics.retired("m", "2", new)
    assert of_versions(metrics) == {"2": 1}
