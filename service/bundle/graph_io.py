"""Names, dtypes and shapes of the graphs' inputs and outputs: written by `export.graphs`, bound by `service.engine`.

B = rows, S = source length (padded), T = target length (padded), C = capacity of the key/value arena, H = heads,
D = head size, K = candidates, V = the target's vocabulary, W = V + 1 rounded up to a multiple of 8.

Encoder graph
    in   source_ids        (B, S) int64     padded with pad_id on the right
         source_lengths    (B,)   int32     live tokens per row, at least 1
    out  cross_key.<l>     (B, H, S, D)     one pair per decoder layer l: cross-attention keys and values
         cross_value.<l>   (B, H, S, D)     at padded positions they are finite and masked by the step graph
         listed            (B, W) bool      if the model has shortlists (`ModelShape.shortlist_size`): which of the V
                                            tokens the translation of a source may consist of; the rest means nothing

Decoder step graph: one token per row; rows have different lengths
    in   token_ids         (B,)   int64     the last token chosen (decoder_start_id at first)
         lengths           (B,)   int32     tokens already in the row's self-attention cache
         total_length      (1,)   int32     max(lengths) + 1; read on the host, so always in CPU memory
         source_lengths    (B,)   int32     live source tokens per row
         num_candidates    (1,)   int64     K; 0 if no log-probabilities are needed; always in CPU memory
         past_key.<l>      (B, H, C, D)     the arena; bind present_* to the same buffer: appended to in place
         past_value.<l>    (B, H, C, D)
         past_state.<l>    (B, d)            instead, in a model with recurrent layers (`ModelShape.is_recurrent`):
                                            what a layer keeps of the tokens so far, ignored if `lengths` is 0
         cross_key.<l>     (B, H, S, D)
         cross_value.<l>   (B, H, S, D)
         listed            (B, W) bool      as above, if the model has shortlists
    out  next_ids          (B,)   int64     arg-max over the allowed tokens: all that greedy search needs. NO_TOKEN
                                            for a row whose last hidden state contains NaN
         next_log_probs    (B,)   float32   its log-probability
         candidate_ids     (B, K) int64     the K most probable allowed tokens, best first
         candidate_log_probs (B, K) float32
         present_key.<l>, present_value.<l> (B, H, C, D), or present_state.<l> (B, d)
         logits             (B, V) float32  of all tokens, minus infinity for those in `suppressed_ids`
         log_totals         (B,)   float32  log-sum-exp of the whole vocabulary's logits, suppressed tokens included

With shortlists, a row's vocabulary is the tokens in its list: others are not allowed, and have no share of anything.
Log-probabilities are normalised over the whole vocabulary, or over the allowed tokens if the model requires it
(transformers' `renormalize_logits`); tokens in the model's `suppressed_ids` are never chosen.
With K = 0 they are not computed: then only `next_ids` and `logits` may be fetched. With K >= 1 all outputs are
available. A graph may lack the last two (`SCORE_OUTPUTS`): then the options that change scores can't be served.
(`RunOptions.only_execute_path_to_fetches` has no effect on bound outputs, so the graph implements this itself.)

Alignment graph: whole hypotheses in one teacher-forced run, up to the cross-attention of decoder layer L
    in   target_ids        (B, T) int64     target prefix and output, padded on the right; the graph itself prepends
                                            decoder_start_id
         source_lengths    (B,)   int32     live source tokens per row
         cross_key.<l>     (B, H, S, D)     for layers l < L
         cross_value.<l>   (B, H, S, D)
         cross_key.<L>     (B, H, S, D)     the chosen layer's, without its values
    out  attention         (B, T, S) float32  where each target token came from: the mean over the chosen heads; a row
                                            sums to 1 over the live source tokens. Padding rows are meaningless.
"""

SOURCE_IDS = "source_ids"
SOURCE_LENGTHS = "source_lengths"
TOKEN_IDS = "token_ids"  # noqa: S105
LENGTHS = "lengths"
TOTAL_LENGTH = "total_length"
NUM_CANDIDATES = "num_candidates"
NEXT_IDS = "next_ids"
NEXT_LOG_PROBS = "next_log_probs"
CANDIDATE_IDS = "candidate_ids"
CANDIDATE_LOG_PROBS = "candidate_log_probs"
LOGITS = "logits"
LOG_TOTALS = "log_totals"
SCORE_OUTPUTS = (LOGITS, LOG_TOTALS)
LISTED = "listed"
TARGET_IDS = "target_ids"
ATTENTION = "attention"

NO_TOKEN = -1

WORD_BYTES = 8  # a device's memory is copied in words, whatever they contain


def listed_width(vocabulary_size: int) -> int:
    """Return W, with room for one more token than there are: where lists are shorter than others, they name that."""
    return -(-(vocabulary_size + 1) // WORD_BYTES) * WORD_BYTES


def cross_names(num_layers: int) -> list[str]:
    """Return the keys and values of a source: `cross_key.0, cross_value.0, cross_key.1, ...`."""
    return _per_layer("cross", num_layers)


def source_names(num_layers: int, *, has_shortlists: bool = False) -> list[str]:
    """Return all encoder outputs, in order: what a row keeps of its source, and the last step inputs."""
    return [*cross_names(num_layers), *([LISTED] if has_shortlists else [])]


def past_names(num_layers: int, *, is_recurrent: bool = False) -> list[str]:
    """Return the step inputs that hold the self-attention cache, or the layers' states, before the step."""
    return _per_layer("past", num_layers, is_recurrent=is_recurrent)


def present_names(num_layers: int, *, is_recurrent: bool = False) -> list[str]:
    """Return the step outputs that hold the same after the step, in the order of `past_names`."""
    return _per_layer("present", num_layers, is_recurrent=is_recurrent)


def encoder_inputs() -> list[str]:
    return [SOURCE_IDS, SOURCE_LENGTHS]


def step_inputs(num_layers: int, *, is_recurrent: bool = False, has_shortlists: bool = False) -> list[str]:
    scalars = [TOKEN_IDS, LENGTHS, TOTAL_LENGTH, SOURCE_LENGTHS, NUM_CANDIDATES]
    past = past_names(num_layers, is_recurrent=is_recurrent)
    return scalars + past + source_names(num_layers, has_shortlists=has_shortlists)


def step_outputs(num_layers: int, *, is_recurrent: bool = False) -> list[str]:
    """Return the outputs that every decoder step graph has, in order; `SCORE_OUTPUTS` follow."""
    present = present_names(num_layers, is_recurrent=is_recurrent)
    return [NEXT_IDS, NEXT_LOG_PROBS, CANDIDATE_IDS, CANDIDATE_LOG_PROBS, *present]


def alignment_inputs(layer: int) -> list[str]:
    return [TARGET_IDS, SOURCE_LENGTHS, *cross_names(layer + 1)[:-1]]


def _per_layer(kind: str, num_layers: int, *, is_recurrent: bool = False) -> list[str]:
    parts = ("state",) if is_recurrent else ("key", "value")
    return [f"{kind}_{part}.{layer}" for layer in range(num_layers) for part in parts]
