"""Names, dtypes and shapes of the fused graphs: what `kernels/` implements and `service.engine` binds.

A fused graph has one node of the domain `dragoman`, whose operator runs the whole encoder, or several steps of the
decoder with the choice of tokens. N = slots, C = tokens per row, d = width of the model, H = heads, D = head size, a
multiple of 16, L = decoder layers, A and S = blocks of 16 tokens that a row of the self- or cross-attention cache has.

Encode
    in   token_ids         (T,)      int64    the sources, one after the other; what follows them is ignored
         ends              (B,)      int32    where each source ends in `token_ids`
         slots             (B,)      int32    the row of the cross-attention cache that each one is written to
         cross_cache       (N, L, S, H, 2, 16 D) float32, written in place
         num_threads       (1,)      int32    that the run may use, the caller's included
    out  is_finite         (B,)      int32    0 where the encoder produced NaN or infinity
         most_repeats      (B,)      int32    how often, at most, the same up to 16 tokens occur in a row in a source

Decode
    in   control           `CONTROL`, as (16,) int32
         rows              (N, 208)  uint8    `ROW`
         output_ids        (N, C)    int64
         history           (N, C)    int32
         hypotheses        (2 N, 16) uint8    `HYPOTHESIS`
         hypothesis_ids    (2 N, C)  int64
         self_cache        (N, L, A, H, 2, 16 D) float32
         cross_cache       (N, L, S, H, 2, 16 D) float32
         attention         (N, C, W) float32, or (0, 0, 0): for each token that a row reads, how much it attends to each
                           of the source's up to W tokens, by the mean of the heads that the graph names
    out  num_steps         (1,)      int32

All inputs of Decode but `cross_cache` are changed in place. `kernels/src/search/state.h` says what the fields mean.
"""

import numpy as np

from service.domain.options import LONGEST_REPEAT, MAX_BEAM_SIZE

DOMAIN = "dragoman"
ENCODE = "Encode"
DECODE = "Decode"
BLOCK_TOKENS = 16

CONTROL = np.dtype(
    [
        ("num_rows", np.int32),
        ("max_steps", np.int32),
        ("returns_after", np.int32),
        ("interrupt", np.int32),
        ("eos_id", np.int32),
        ("decoder_start_id", np.int32),
        ("num_steps", np.int32),
        ("num_generated", np.int32),
        ("num_threads", np.int32),
        ("num_row_steps", np.int32),
        ("num_ended", np.int32),
        ("least_steps", np.int32),
        ("reserved", np.int32, 4),
    ]
)

# Values of CONTROL's `interrupt`, which other threads set.
NO_INTERRUPT, INTERRUPT_NOW, INTERRUPT_FOR_NEWCOMERS = range(3)

ROW = np.dtype(
    [
        ("token_id", np.int64),
        ("seed", np.uint64),
        ("length", np.int32),
        ("source_length", np.int32),
        ("forced_length", np.int32),
        ("limit", np.int32),
        ("slot", np.int32),
        ("source_slot", np.int32),
        ("max_repeats", np.int32),
        ("top_k", np.int32),
        ("log_prob", np.float32),
        ("temperature", np.float32),
        ("top_p", np.float32),
        ("width", np.int32),
        ("rank", np.int32),
        ("beam_rows", np.int32, MAX_BEAM_SIZE),
        ("caller_prefix", np.int32),
        ("model_prefix", np.int32),
        ("no_repeat_ngram_size", np.int32),
        ("min_output_tokens", np.int32),
        ("length_penalty", np.float32),
        ("repetition_penalty", np.float32),
        ("flags", np.int32),
        ("status", np.int32),
        ("excess", np.int32),
        ("num_finished", np.int32),
        ("num_given_up", np.int32),
        ("runs", np.int32, LONGEST_REPEAT),
    ]
)

HYPOTHESIS = np.dtype([("score", np.float32), ("length", np.int32), ("excess", np.int32), ("reserved", np.int32)])

RUNNING, STOPPED, AT_LIMIT, REPEATING, BROKEN = range(5)  # `status`
WANTS_SCORE, FORCES_END, STOPS_EARLY = 1, 2, 4  # `flags`

ENCODE_INPUTS = ("token_ids", "ends", "slots", "cross_cache", "num_threads")
ENCODE_OUTPUTS = ("is_finite", "most_repeats")
DECODE_INPUTS = (
    "control", "rows", "output_ids", "history", "hypotheses", "hypothesis_ids", "self_cache", "cross_cache",
    "attention",
)  # fmt: skip
DECODE_OUTPUTS = ("num_steps",)
