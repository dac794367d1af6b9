"""Lists the state of each version of each model on disk and in memory. Pure functions."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.models.repository import FoundBundle, ModelDirectory, version_number


class LoadState(enum.Enum):
    """The state of a version."""

    READY = "ready"
    LOADING = "loading"
    UNLOADING = "unloading"  # not selected by new calls; still has calls to answer
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of one version, and the reason if it is unavailable. A folder that can't be read has no `version`."""

    name: str
    version: str
    state: LoadState
    reason: str = ""


def list_states(
    on_disk: Sequence[ModelDirectory],
    refused: Mapping[Path, str],
    retiring: Sequence[FoundBundle],
    loading: FoundBundle | None,
    served: Sequence[FoundBundle],
) -> list[ModelState]:
    """List versions ordered by name, for each name the lowest first; `refused` is why bundles can't be loaded.

    A version that is replaced in place appears once: ready as long as one of the two is served.
    """
    states: dict[tuple[str, str], ModelState] = {}

    def note(name: str, version: str, state: LoadState, reason: str = "") -> None:
        states[name, version] = ModelState(name, version, state, reason)

    for model in on_disk:
        if model.faults:
            note(model.name, "", LoadState.UNAVAILABLE, " ".join(model.faults))
        for bundle in model.bundles:
            note(bundle.name, bundle.version, LoadState.UNAVAILABLE, refused.get(bundle.directory, "it is not loaded"))
    for bundle in retiring:
        note(bundle.name, bundle.version, LoadState.UNLOADING)
    if loading is not None:
        note(loading.name, loading.version, LoadState.LOADING)
    for bundle in served:
        note(bundle.name, bundle.version, LoadState.READY)
    return sorted(states.values(), key=lambda each: (each.name, version_number(each.version)))
