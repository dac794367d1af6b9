import numpy as np

from service.engine.search.single_rows import ended


def test_rows_end_with_the_end_of_sentence_or_at_their_limit() -> None:
    chosen = np.array([1, 5, 5, 1])
    lengths, limits = np.array([3, 4, 4, 4], np.int32), np.array([9, 4, 5, 4], np.int32)
    assert ended(chosen, lengths, limits, eos_id=1).tolist() == [True, True, False, True]
