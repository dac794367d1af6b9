"""How hypotheses of different lengths are compared."""

import numpy as np


def normalized(log_prob: float, length: int, length_penalty: float) -> float:
    """Divide a summed log-probability by `length ** length_penalty`, in float32 as transformers does.

    `length` counts all tokens behind the start token: a forced prefix of the model's, such as M2M100's language token,
    and the end-of-sentence token too. The caller's own prefix does not count, as transformers' `decoder_input_ids`.
    """
    return float(np.float32(log_prob) / np.float32(length**length_penalty))
