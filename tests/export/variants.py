"""Models that differ from the shipped one in every choice: post-norm, no biases, nothing shared; and their graphs.

One has a shortlist.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import typing as npt

from export.alignment import AlignmentHeads
from export.architecture import PositionConfig, RelativeBiasConfig
from export.architecture.transformer import Transformer
from export.graphs.dense import padded_head_size
from export.graphs.execution import GraphPair
from export.graphs.listing import list_graphs
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.graphs.weights_file import WeightsFile
from export.shortlist import Shortlist
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import ModelShape
from tests.export.tiny_models import tiny_config, tiny_model
from tests.references.shortlists import allowed_tokens
from tests.unit.models.bare_manifest import MANIFEST

SUPPRESSED = (3, 1, 40)
LENGTHS = [2, 9, 30, 5, 17]
NUM_STEPS = 12

# Heads of 10 components, padded to 16; nothing shared. One variant has more layers, which take time.
AWKWARD: dict[str, Any] = {
    "source_vocabulary_size": 70,
    "target_vocabulary_size": 90,
    "d_model": 30,
    "num_heads": 3,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "norm": "post",
    "share_embeddings": False,
    "tie_projection": False,
    "projection_bias": True,
}
UNEVEN = AWKWARD | {
    "d_model": 44,
    "d_ff": 37,
    "num_heads": 2,
    "decoder_d_model": 30,
    "decoder_d_ff": 50,
    "decoder_num_heads": 3,
    "norm": "sandwich",
    "block_norm": True,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": AWKWARD
    | {
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "d_ff": 37,
        "decoder_d_ff": 21,
        "final_norm": False,
        "activation": "gelu",
        "attention_bias": False,
        "attention_output": "none",
        "score_scale": "model",
        "positions": PositionConfig(layout="interleaved", base=1000.0, cosine_exponent="unbracketed"),
    },
    "t5": AWKWARD
    | {
        "d_model": 27,
        "d_ff": 37,
        "d_head": 10,
        "norm": "pre",
        "final_norm": True,
        "layer_norm": "rms",
        "activation": "gelu_tanh",
        "gated": True,
        "attention_bias": False,
        "feed_forward_bias": False,
        "score_scale": "none",
        "scale_embeddings": False,
        "qk_norm": "layer",
        "positions": PositionConfig(layout="rotary", rotary_size=6, base=100.0),
        "relative_bias": RelativeBiasConfig(num_buckets=8, max_distance=11),
    },
    "learned": AWKWARD
    | {
        "d_model": 60,
        "d_head": 16,
        "tie_projection": True,
        "norm": "pre",
        "final_norm": True,
        "layer_norm": "scalar",
        "activation": "identity",
        "embedding_norm": True,
        "positions": PositionConfig(layout="learned"),
        "relative_bias": RelativeBiasConfig(num_buckets=12, max_distance=9, per_layer=True),
    },
    "uneven": UNEVEN,
    "uneven, rotary": UNEVEN
    | {"qk_norm": "rms", "positions": PositionConfig(layout="rotary", rotary_pairs="interleaved")},
    "recurrent": AWKWARD | {"d_model": 48, "max_target_positions": 33, "final_norm": False, "autoregression": "ssru"},
}
# Of those that are traced; "uneven, rotary" would take longest, and "uneven" and "t5" have its parts.
ALIGNMENTS = {
    "plain": AlignmentHeads(2, (2, 0)),
    "t5": AlignmentHeads(1, (0, 2)),
    "learned": AlignmentHeads(1, (0,), reads=True),
    "uneven": AlignmentHeads(1, (2,)),
    "recurrent": AlignmentHeads(0, (1, 2)),
}
_LENGTHS = np.random.default_rng(5).integers(0, 5, 70)  # of the lists
SHORTLISTS = {
    "recurrent": Shortlist(
        np.array([2, 3, 7]),
        np.cumsum([0, *_LENGTHS]),
        np.random.default_rng(6).integers(0, 90, _LENGTHS.sum()).astype(np.int32),
    )
}


class Variant(NamedTuple):
    """A model, the heads that its alignment graph is made of, its shortlist, and the folder of its graphs."""

    model: Transformer
    alignment: AlignmentHeads
    shortlist: Shortlist | None
    folder: Path

    @property
    def shape(self) -> ModelShape:
        """Return the sizes that the graphs have."""
        return ModelShape(
            num_decoder_layers=self.model.config.num_decoder_layers,
            num_heads=3,
            head_size=padded_head_size(10),
            vocabulary_size=90,
            state_size=self.model.config.state_size,
            shortlist_size=90 if self.shortlist else 0,
        )

    @property
    def pair(self) -> GraphPair:
        """Open encoder and decoder step."""
        return GraphPair(self.folder / "encoder.onnx", self.folder / "decoder_step.onnx", self.shape, num_threads=1)

    @property
    def manifest(self) -> Manifest:
        """Return what of a manifest describes the graphs."""
        architecture = self.model.config.to_document()
        return dataclasses.replace(MANIFEST, model=self.shape, suppressed_ids=SUPPRESSED, architecture=architecture)

    def allowed(self, source_ids: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return which tokens (V,) the translation of a source may consist of, suppressed ones included."""
        if self.shortlist is None:
            return np.ones(90, np.bool_)
        lists = self.shortlist
        return allowed_tokens(lists.always, lists.offsets, lists.ids, source_ids, 90, has_one_vocabulary=False)


def variant_in(folder: Path, name: str) -> Variant:
    """Return a variant, always the same one, whose graphs are in a folder, or will be."""
    model = tiny_model(tiny_config(**VARIANTS[name]))
    with torch.no_grad():
        # Otherwise only the position decides the next token; of what is the projection, too, less is enough.
        model.decoder.embedding.tokens.weight.normal_(std=1.0 if model.config.tie_projection else 3.0)
        if not model.config.tie_projection:
            model.projection.weight.mul_(3.0)
        model.projection.bias.normal_()
    return Variant(model, ALIGNMENTS[name], SHORTLISTS.get(name), folder)


def write_graphs(variant: Variant) -> None:
    """Write a variant's graphs."""
    model, folder = variant.model, variant.folder
    with WeightsFile(folder) as file:
        trace_encoder(model, folder / "encoder.onnx", file)
        trace_decoder_step(model, SUPPRESSED, folder / "decoder_step.onnx", file)
        trace_alignment(model, variant.alignment, folder / "alignment.onnx", file)
        if variant.shortlist is not None:
            list_graphs(folder, variant.manifest, variant.shortlist, file)
