"""What several workers say about their state, as one document. Pure functions of what each has answered, by number."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from service.faces.admin.answers import Document
from service.observe.recent_errors import NUM_KEPT
from service.process.lifecycle import Phase

SILENT = "silent"  # the phase of a worker that does not answer
# What the whole is in, if any worker is: it answers as long as one of them does.
_PHASES = (Phase.SERVING, Phase.RECOVERING, Phase.LOADING, Phase.DRAINING, Phase.FAILED)
_SUMMED = ("slots_running", "slots_max", "queue_sequences")

ByWorker = Mapping[int, Document | None]  # `None`: no answer


def phase_of(statuses: ByWorker) -> str:
    """Return the phase of the whole server; silent if no worker answers."""
    phases = {status["phase"] for status in statuses.values() if status is not None}
    return next((phase.value for phase in _PHASES if phase.value in phases), SILENT)


def workers_of(statuses: ByWorker) -> list[Document]:
    """Return a line for each worker; of one that does not answer, its number and phase only."""
    return [
        {"number": number, "phase": SILENT}
        if status is None
        else {
            "number": number,
            "phase": status["phase"],
            "pid": status["pid"],
            "uptime_seconds": status["uptime_seconds"],
            "calls": sum(status["calls"].values()),
            "sequences_running": status["sequences_running"],
            "queue_sequences": status["queue_sequences"],
            "memory_bytes": status["memory_bytes"],
        }
        for number, status in statuses.items()
    ]


def models_of(statuses: ByWorker) -> list[Document]:
    """Return the served models with the sums of their slots and queues; `workers` if not all that answer serve it."""
    answered = {number: status for number, status in statuses.items() if status is not None}
    served: dict[tuple[str, str], list[tuple[int, Document]]] = {}
    for number, status in answered.items():
        for model in status["models"]:
            served.setdefault((model["name"], model["version"]), []).append((number, model))
    return [
        {**models[0][1], **{name: sum(model[name] for _, model in models) for name in _SUMMED}}
        | _if_some([number for number, _ in models], answered)
        for models in served.values()
    ]


def states_of(documents: ByWorker) -> Document:
    """Return the state of each version on disk or in memory; where workers differ, each state with its `workers`."""
    answered = {number: document for number, document in documents.items() if document is not None}
    states: dict[tuple[str, str, str, str], list[int]] = {}
    for number, document in answered.items():
        for state in document["models"]:
            key = state["name"], state["version"], state["state"], state["reason"]
            states.setdefault(key, []).append(number)
    names = ("name", "version", "state", "reason")
    rows: list[dict[str, Any]] = [
        dict(zip(names, key, strict=True)) | _if_some(numbers, answered) for key, numbers in states.items()
    ]
    return {"models": sorted(rows, key=lambda row: row["name"])}


def errors_of(statuses: ByWorker) -> list[Document]:
    """Return the latest errors of all workers, newest first, each with its worker's number."""
    errors = [
        {**error, "worker": number}
        for number, status in statuses.items()
        if status is not None
        for error in status["errors"]
    ]
    return sorted(errors, key=lambda error: -error["time_seconds"])[:NUM_KEPT]


def _if_some(numbers: Sequence[int], answered: Iterable[int]) -> dict[str, Any]:
    return {} if set(numbers) == set(answered) else {"workers": list(numbers)}
