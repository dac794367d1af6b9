"""Names, dtypes and shapes of the fused graphs: what `kernels/` implements and `service.engine` binds.

A fused graph has one node of the domain `dragoman`, whose operator runs the whole encoder, or several steps of the
decoder with the choice of tokens. N = slots, C = tokens per row, d = width of the model, H = heads, D = head size, a
multiple of 16, L = decoder layers, A and S = blocks of 16 tokens that a row of the self- or cross-attention cache has.

Encode
    in   token_ids         (T,)      int64    the sources, one after the other; what follows them is ignored
         ends              (B,)      int32    where each source ends in `token_ids`
         slots             (B,)      int32    the row of the cross-attention cache that each one is written to
         cross_cache       (N, L, S, H, 2, 16 D) bfloat16, written in place
         num_threads       (1,)      int32    that the run may use, the caller's included
         shortlists        (N, 1 + M) int32   if the model has shortlists (`ModelShape.shortlist_size`, M): of a source,
                                              in its slot, how many tokens its translation may consist of, and which,
                                              ascending; written
    out  is_finite         (B,)      int32    0 where the encoder produced NaN or infinity
         most_repeats      (B,)      int32    how often, at most, the same up to 16 tokens occur in a row in a source

Decode
    in   control           `CONTROL`, as (16,) int32
         rows              (N, 208)  uint8    `ROW`
         output_ids        (N, C)    int64
         history           (3 N, C)  int32    of the rows, then of `hypotheses`
         hypotheses        (2 N, 16) uint8    `HYPOTHESIS`
         hypothesis_ids    (2 N, C)  int64
         self_cache        (N, L, A, H, 2, 16 D) bfloat16; of recurrent layers (N, L, 2, 2 E): by parity of steps, the
                           state after the last even and the last odd one, (E,) float32, E = d rounded up to 16
         cross_cache       (N, L, S, H, 2, 16 D) bfloat16
         attention         (N, C, W) float32, or (0, 0, 0): of each slot, how much each of up to C tokens that were read
                           attended to each of the source's S <= W tokens, by the mean of the heads that the graph
                           names; as (C, S), at the beginning of the slot's memory; of rows that want it
         shortlists        (N, 1 + M) int32  as above, if the model has shortlists; only read
    out  num_steps         (1,)      int32

bfloat16 is the upper half of a float32, in uint16. All inputs of Decode but `cross_cache` and `shortlists` are changed
in place.
`bundle.search_layout` says what the fields mean.
"""

from typing import Final

import numpy as np

from service.bundle import search_layout
from service.bundle.graph_file import DECODE as DECODE
from service.bundle.graph_file import ENCODE as ENCODE
from service.bundle.graph_file import FUSED_DOMAIN as FUSED_DOMAIN
from service.bundle.manifest_parts import ModelShape
from service.bundle.search_layout import UNGUARDED as UNGUARDED
from service.bundle.search_layout import Constant, Structure

BLOCK_TOKENS = 16


def state(size: int) -> tuple[int, int]:
    """Return the shape of a layer's state of `size` numbers in the cache of one slot."""
    return 2, 2 * (-(-size // BLOCK_TOKENS) * BLOCK_TOKENS)


def _dtype(structure: Structure) -> np.dtype[np.void]:
    return np.dtype(
        [
            (name, kind) if length == 1 else (name, kind, length.value if isinstance(length, Constant) else length)
            for name, kind, _, length in structure.fields
        ]
    )


CONTROL: Final = _dtype(search_layout.CONTROL)
ROW: Final = _dtype(search_layout.ROW)
HYPOTHESIS: Final = _dtype(search_layout.HYPOTHESIS)
STEP: Final = _dtype(search_layout.STEP)

NO_INTERRUPT, INTERRUPT_NOW, INTERRUPT_FOR_NEWCOMERS = (each.value for each in search_layout.Interrupt)
RUNNING, STOPPED, AT_LIMIT, REPEATING, BROKEN = (each.value for each in search_layout.Status)
WANTS_SCORE, FORCES_END, STOPS_EARLY, WANTS_ATTENTION, NARROWS = (each.value for each in search_layout.Flags)

ENCODE_INPUTS = ("token_ids", "ends", "slots", "cross_cache", "num_threads")
ENCODE_OUTPUTS = ("is_finite", "most_repeats")
DECODE_INPUTS = (
    "control", "rows", "output_ids", "history", "hypotheses", "hypothesis_ids", "self_cache", "cross_cache",
    "attention",
)  # fmt: skip
DECODE_OUTPUTS = ("num_steps",)
SHORTLISTS = "shortlists"


def inputs_of(operator: str, shape: ModelShape) -> tuple[str, ...]:
    """Return the inputs of an operator of a model, in order, without its constants."""
    own = {ENCODE: ENCODE_INPUTS, DECODE: DECODE_INPUTS}[operator]
    return (*own, SHORTLISTS) if shape.shortlist_size else own
