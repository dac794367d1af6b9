"""What dashboards and autoscalers for Triton expect of /metrics."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from service.models.loaded_model import LoadedModel
from service.models.statistics import Duration, InferenceStatistics
from service.observe.registry import ForeignMetric

# Each metric with its help, and how it is read of a model. Times are sums in microseconds.
_COUNTERS: Mapping[str, tuple[str, Callable[[InferenceStatistics], float]]] = {
    "request_success": ("Calls that succeeded.", lambda now: now.succeeded.count),
    "request_failure": ("Calls that failed or were cancelled.", lambda now: now.failed.count),
    "count": ("Texts of calls that succeeded.", lambda now: now.num_texts),
    "exec_count": ("Runs of the decoder.", lambda now: sum(step.count for step in now.step_seconds().values())),
    "request_duration_us": ("Time of calls that succeeded.", lambda now: _microseconds(now.succeeded)),
    "queue_duration_us": ("Time until the first of a call's texts got a slot.", lambda now: _microseconds(now.queue)),
    "compute_input_duration_us": ("Time of tokenizing.", lambda now: _microseconds(now.tokenize)),
    "compute_infer_duration_us": ("Time of decoding.", lambda now: _microseconds(now.decode)),
    "compute_output_duration_us": ("Time of detokenizing.", lambda now: _microseconds(now.detokenize)),
}


def triton_metrics(models: Iterable[LoadedModel]) -> Iterator[ForeignMetric]:
    """Yield the models' statistics since they were loaded."""
    known = [({"model": model.name, "version": model.version or "1"}, model) for model in models]
    for name, (text, read) in _COUNTERS.items():
        values = [(labels, read(model.statistics)) for labels, model in known]
        yield ForeignMetric(f"nv_inference_{name}", text, False, values)
    waiting = [(labels, float(model.engine.snapshot().num_waiting)) for labels, model in known]
    yield ForeignMetric("nv_inference_pending_request_count", "Texts that wait for a free slot.", True, waiting)


def _microseconds(took: Duration) -> int:
    return round(took.seconds * 1e6)
