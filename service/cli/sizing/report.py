"""What a measurement means, for people and for programs."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from service.cli.sizing.advice import Advice
from service.cli.sizing.measurement import Measurement

_FULL_CPU = 0.85  # of the callers', which run on one


def notes_on(
    found: Measurement, objective_seconds: float, num_cpus: int, *, are_shared: bool, has_sample: bool
) -> Iterator[str]:
    """Yield what spoils the figures of a server on `num_cpus`, which it shared with its callers if `are_shared`."""
    if not has_sample:
        yield "the texts are the model's test sentences; yours may be longer: give a sample with --file."
    if are_shared:
        yield (
            f"the callers shared the server's CPUs and took {_most(found, 'callers_cpus'):.2f} of them; the pods can "
            "do more. Leave a CPU free with fewer --num-threads."
        )
    if any(point.is_disturbed(num_cpus) for point in found.points):
        others = _most(found, "others_cpus")
        yield f"other processes took up to {others:.2f} of the server's CPUs; measure on a quiet machine."
    if _most(found, "callers_cpus") > _FULL_CPU:
        yield "the callers were the limit, not the server: the pods can do more. Give fewer --num-threads."
    elif (late := _most(found, "late_seconds")) > objective_seconds / 4:
        yield f"calls were sent up to {milliseconds(late)} late, which counts as latency; measure on a quiet machine."


def report(rate: float, objective_seconds: float, ready_seconds: float, found: Measurement, advice: Advice) -> str:
    """Return the answer for a terminal."""
    at = min(found.points, key=lambda point: abs(point.rate - found.pod_rate))
    needed = math.ceil(rate / found.pod_rate)
    rows = (
        ("a pod keeps it up to", f"{found.pod_rate:.1f} calls/s (capacity: {found.capacity:.1f})"),
        ("there", f"{at.server_cpus:.2f} CPUs, load {found.load:.2f}, {found.last.memory_bytes / 2**20:.0f} MiB"),
        ("cold start", f"{ready_seconds:.1f} s from command to ready; pulling an image comes on top"),
        ("pods, fixed", f"{advice.pods}: {needed} carry the rate; one may be missing, with room for peaks"),
        ("pods, scaled", f"{advice.least_pods} to {advice.most_pods}, at a load of {advice.target_load:g} each"),
        ("request", f"{advice.cpus} CPU, {advice.memory_bytes // 2**20} MiB of memory, which is the limit, too"),
    )
    lines = [f"{rate:g} calls/s, 99 % of them within {milliseconds(objective_seconds)}:"]
    return "\n".join([*lines, *(f"  {heading:<21} {text}" for heading, text in rows)])


def document(ready_seconds: float, found: Measurement, advice: Advice, notes: Sequence[str]) -> str:
    """Return all that was measured, and the answer, in JSON."""
    measured = asdict(found, dict_factory=_with_nulls)
    contents = {"ready_seconds": ready_seconds, **measured, "advice": asdict(advice), "notes": notes}
    return json.dumps(contents, indent=2, ensure_ascii=False, allow_nan=False)


def milliseconds(seconds: float) -> str:
    """Return a time for people."""
    if not math.isfinite(seconds):
        return "not reached"
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.01 else f"{1e3 * seconds:.2g} ms"


def _most(found: Measurement, field: str) -> float:
    return max((getattr(point, field) for point in found.points), default=0.0)


def _with_nulls(fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in fields}
