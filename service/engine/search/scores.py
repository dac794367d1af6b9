"""Scores by which hypotheses of different lengths are compared."""

import numpy as np


def normalized(log_prob: float, length: int, length_penalty: float) -> float:
    """Divide a summed log-probability by `length ** length_penalty`, in float32 as transformers does.

    `length` counts all tokens after the start token, including the model's forced prefix, such as M2M100's language
    token, and the end-of-sentence token. The caller's own prefix does not count, like transformers'
    `decoder_input_ids`.
    """
    return float(np.float32(log_prob) / np.float32(length**length_penalty))
