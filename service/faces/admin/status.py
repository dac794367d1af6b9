"""The models and errors in /status.json."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from service.models.loaded_model import LoadedModel
from service.observe.recent_errors import RecentError


def models_of(models: Sequence[LoadedModel]) -> list[dict[str, Any]]:
    """Return the served models; each of the `any_to_any` languages is translated into each other one."""
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
    """Return the errors as dictionaries."""
    return [dataclasses.asdict(error) for error in errors]
