"""Decides what to load and what to retire so that the served models match the disk; the outcomes of reloads."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.models.repository import FoundBundle, ModelDirectory, Stamp


class ReloadOutcome(enum.Enum):
    """The outcome of checking the models on disk for changes."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # something was loaded or retired, and nothing rejected
    FAILED = "failed"  # the disk, or a new bundle on it, could not be read or loaded


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """Bundles to load, one after the other, and served ones that may be retired now. Plan again after each load."""

    load: list[FoundBundle]
    retire: list[FoundBundle]


def plan_reload(
    served: Sequence[FoundBundle], on_disk: Sequence[ModelDirectory], refused: Mapping[Path, Stamp]
) -> ReloadPlan:
    """Compare the served bundles with those on disk; `refused` holds the stamps of bundles that failed to load.

    A failed bundle is loaded again only when its files have changed. A version replaced in place is retired when its
    successor is served, another one when all versions wanted for its model are. A model whose folder is gone is retired
    when nothing is left to load, unless nothing would be left.
    """
    models = {model.path: model for model in on_disk}
    wanted = [bundle for model in on_disk for bundle in model.bundles]
    load = [bundle for bundle in wanted if bundle not in served and refused.get(bundle.directory) != bundle.stamp]
    standing = [bundle for bundle in served if bundle in wanted]

    def may_go(bundle: FoundBundle) -> bool:
        if any((bundle.name, bundle.version) == (other.name, other.version) for other in standing):
            return True
        model = models.get(bundle.model_directory)
        if model is None:
            return bool(standing) and not load
        return bool(model.bundles) and not model.faults and all(other in standing for other in model.bundles)

    return ReloadPlan(load, [bundle for bundle in served if bundle not in wanted and may_go(bundle)])
