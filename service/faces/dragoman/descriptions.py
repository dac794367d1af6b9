"""What our own API says, over gRPC and HTTP, of models and positions: fields by name."""

from collections.abc import Sequence
from typing import Any

from service.domain.options import OPTIONS
from service.domain.translation import AlignedSpan, Segment
from service.models.catalogue import Catalogue, PivotedPair
from service.models.loaded_model import LoadedModel

Document = dict[str, Any]


def model_documents(catalogue: Catalogue) -> list[Document]:
    """Return the public descriptions of the models."""
    pivoted: dict[LoadedModel, list[PivotedPair]] = {}
    for pair in catalogue.pivoted():
        pivoted.setdefault(pair.writer, []).append(pair)
    return [_model_document(model, pivoted.get(model, ())) for model in catalogue.models()]


def _model_document(model: LoadedModel, pivoted: Sequence[PivotedPair]) -> Document:
    limits, defaults = model.manifest.limits, model.default_options
    return {
        "name": model.name,
        "version": model.version,
        "language_pairs": [
            {"source_language_code": source, "target_language_code": target} for source, target in model.pairs.listed
        ],
        "any_to_any_language_codes": list(model.pairs.any_to_any),
        "pivoted_pairs": [
            {
                "source_language_code": pair.source,
                "target_language_code": pair.target,
                "pivot_language_code": pair.pivot,
            }
            for pair in pivoted
        ],
        "max_source_tokens": limits.max_source_tokens,
        "max_output_tokens": limits.max_output_tokens,
        "default_options": {name: getattr(defaults, name) for name in OPTIONS},
        "precision": model.manifest.precision,
        "kernels": model.kernels,
        "licence": model.manifest.licence or "unknown",
    }


def span_document(span: AlignedSpan | Segment) -> Document:
    """Return the positions of a part of a source and of its translation."""
    return {
        "source_start": span.source_start,
        "source_end": span.source_end,
        "target_start": span.target_start,
        "target_end": span.target_end,
    }
