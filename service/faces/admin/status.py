"""The data of /status.json: models, errors, and numbers read from the metrics, counted nowhere else.

The page computes rates and percentiles from the differences between two readings.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from service.domain.call import CallKind
from service.models.loaded_model import LoadedModel
from service.observe.recent_errors import RecentError
from service.observe.registry import Sample

_COUNTERS = ("source_tokens", "target_tokens")
_GAUGES = ("inflight_requests", "queue_sequences", "sequences_running", "slots_running", "slots_max", "memory_bytes")
_OF_PROCESS = ("process_cpu_seconds_total",)
_HISTOGRAMS = {
    "request_seconds": "dragoman_request_duration_seconds",
    "first_token_seconds": "dragoman_time_to_first_token_seconds",
    "queue_seconds": "dragoman_queue_seconds",
    "batch_size": "dragoman_step_batch_size",
}


def models_of(models: Sequence[LoadedModel]) -> list[dict[str, Any]]:
    """Return the served models; `any_to_any` languages are translated into each other, `samples` are tested texts."""
    described = []
    for model in models:
        manifest, engine = model.manifest, model.engine.snapshot()
        pairs = [[pair.source_language_code, pair.target_language_code] for pair in manifest.languages]
        described.append(
            {
                "name": model.name,
                "version": model.version,
                "precision": manifest.precision,
                "licence": manifest.licence or "unknown",
                "pairs": pairs,
                "samples": {each.source_language_code: each.text for each in reversed(manifest.golden)},
                "any_to_any": [language.code for language in manifest.any_to_any],
                "max_source_tokens": manifest.limits.max_source_tokens,
                "max_output_tokens": manifest.limits.max_output_tokens,
                "slots_running": engine.slots_used,
                "slots_max": engine.max_slots,
                "queue_sequences": engine.num_waiting,
            }
        )
    return described


def errors_of(errors: Iterable[RecentError]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(error) for error in errors]


def numbers_of(samples: Iterable[Sample]) -> dict[str, Any]:
    """Return sums over all models and all calls that translate; histograms have cumulative counts per bound.

    `calls` counts finished calls by status. `kv_bytes_used` and `kv_bytes_reserved` are for slots in use and all slots.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, float] = defaultdict(float)
    buckets: dict[str, defaultdict[float, float]] = {name: defaultdict(float) for name in _HISTOGRAMS.values()}
    by_model: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for sample in samples:
        name, labels, value = sample.name, sample.labels, sample.value
        if labels.get("kind") == CallKind.OTHER:  # such as health checks: they would obscure how long translating takes
            continue
        if name == "dragoman_requests_total":
            calls[labels["code"]] += value
        elif (histogram := name.removesuffix("_bucket")) in buckets and "le" in labels:
            buckets[histogram][float(labels["le"])] += value
        else:
            sums[name] += value
            by_model[name][labels.get("model", "")] = value
    bytes_per_slot = by_model["dragoman_kv_cache_bytes_per_slot"]
    return {
        "calls": dict(calls),
        **{f"{name}_total": sums[f"dragoman_{name}_total"] for name in _COUNTERS},
        **{name: sums[f"dragoman_{name}"] for name in _GAUGES},
        **{name: sums[name] for name in _OF_PROCESS},
        "kv_bytes_used": _product(by_model["dragoman_slots_running"], bytes_per_slot),
        "kv_bytes_reserved": _product(by_model["dragoman_slots_max"], bytes_per_slot),
        "histograms": {
            key: {
                "bounds": [bound for bound in sorted(buckets[name]) if bound != float("inf")],
                "counts": [buckets[name][bound] for bound in sorted(buckets[name])],
                "sum": sums[f"{name}_sum"],
            }
            for key, name in _HISTOGRAMS.items()
        },
    }


def _product(slots: dict[str, float], bytes_per_slot: dict[str, float]) -> float:
    return sum(number * bytes_per_slot.get(model, 0.0) for model, number in slots.items())
