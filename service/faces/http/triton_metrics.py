"""What dashboards and autoscalers for Triton expect of /metrics."""

from collections.abc import Iterable, Iterator

from service.models.loaded_model import Duration, LoadedModel
from service.observe.registry import ForeignMetric

_TEXTS = {
    "nv_inference_request_success": "Calls that succeeded.",
    "nv_inference_request_failure": "Calls that failed or were cancelled.",
    "nv_inference_count": "Texts of calls that succeeded.",
    "nv_inference_exec_count": "Runs of the decoder.",
    "nv_inference_request_duration_us": "Time of calls that succeeded.",
    "nv_inference_queue_duration_us": "Time until the first of a call's texts got a slot.",
    "nv_inference_compute_input_duration_us": "Time of tokenizing.",
    "nv_inference_compute_infer_duration_us": "Time of decoding.",
    "nv_inference_compute_output_duration_us": "Time of detokenizing.",
    "nv_inference_pending_request_count": "Texts that wait for a free slot.",
}
_GAUGES = {"nv_inference_pending_request_count"}


def triton_metrics(models: Iterable[LoadedModel]) -> Iterator[ForeignMetric]:
    """Yield the models' statistics since they were loaded; times are sums in microseconds."""
    values = [({"model": model.name, "version": model.version or "1"}, _values(model)) for model in models]
    for name, text in _TEXTS.items():
        yield ForeignMetric(name, text, name in _GAUGES, [(labels, value[name]) for labels, value in values])


def _values(model: LoadedModel) -> dict[str, float]:
    statistics = model.statistics
    return {
        "nv_inference_request_success": statistics.succeeded.count,
        "nv_inference_request_failure": statistics.failed.count,
        "nv_inference_count": statistics.num_texts,
        "nv_inference_exec_count": sum(step.count for step in statistics.step_seconds().values()),
        "nv_inference_request_duration_us": _microseconds(statistics.succeeded),
        "nv_inference_queue_duration_us": _microseconds(statistics.queue),
        "nv_inference_compute_input_duration_us": _microseconds(statistics.tokenize),
        "nv_inference_compute_infer_duration_us": _microseconds(statistics.decode),
        "nv_inference_compute_output_duration_us": _microseconds(statistics.detokenize),
        "nv_inference_pending_request_count": model.engine.snapshot().num_waiting,
    }


def _microseconds(took: Duration) -> int:
    return round(took.seconds * 1e6)
