"""What our own API says, over gRPC and HTTP, of models and positions: fields by name."""

from typing import Any

from service.domain.options import OPTIONS
from service.domain.translation import AlignedSpan, Segment
from service.models.loaded_model import LoadedModel

Document = dict[str, Any]


def model_document(model: LoadedModel) -> Document:
    """Return the public description of a model."""
    limits, defaults = model.manifest.limits, model.default_options
    return {
        "name": model.name,
        "version": model.version,
        "language_pairs": [
            {"source_language_code": source, "target_language_code": target} for source, target in model.pairs.listed
        ],
        "any_to_any_language_codes": list(model.pairs.any_to_any),
        "max_source_tokens": limits.max_source_tokens,
        "max_output_tokens": limits.max_output_tokens,
        "default_options": {name: getattr(defaults, name) for name in OPTIONS},
        "precision": model.manifest.precision,
        "kernels": model.kernels,
    }


def span_document(span: AlignedSpan | Segment) -> Document:
    """Return the positions of a part of a source and of its translation."""
    return {
        "source_start": span.source_start,
        "source_end": span.source_end,
        "target_start": span.target_start,
        "target_end": span.target_end,
    }
