import numpy as np
import pytest

from export.training.batches import epoch_batches
from export.training.corpus import EncodedCorpus

START, PAD, EOS = 2, 1, 2


def corpus(count: int, weight: float = 1.0) -> EncodedCorpus:
    """Return pairs whose tokens identify the pair: source i is all 10 + i."""
    rng = np.random.default_rng(0)
    source_lengths, target_lengths = rng.integers(2, 9, count), rng.integers(2, 12, count)
    return EncodedCorpus(
        source=np.repeat(np.arange(10, 10 + count), source_lengths).astype(np.uint16),
        target=np.repeat(np.arange(10, 10 + count), target_lengths).astype(np.uint16),
        source_starts=np.concatenate([[0], np.cumsum(source_lengths)]),
        target_starts=np.concatenate([[0], np.cumsum(target_lengths)]),
        weights=np.full(count, weight, np.float32),
    )


def test_an_epoch_shows_every_pair_once_within_the_budget() -> None:
    seen: list[int] = []
    for batch in epoch_batches(corpus(300), 120, START, PAD, seed=1):
        assert batch.num_tokens <= 120
        assert (batch.target_ids[:, 0] == START).all()
        for source, target in zip(batch.source_ids, batch.target_ids, strict=True):
            assert (source == source[0]).all()  # no padding on the source side
            assert set(target[1:]) <= {source[0], PAD}  # pairs stay together
            seen.append(int(source[0]))
    # An epoch omits rows that would be alone in a batch.
    assert len(seen) == len(set(seen))
    assert len(seen) > 280


def test_batches_depend_on_the_seed_and_nothing_else() -> None:
    first, again, other = (list(epoch_batches(corpus(100), 120, START, PAD, seed)) for seed in (1, 1, 2))
    assert all((a.source_ids == b.source_ids).all() for a, b in zip(first, again, strict=True))
    assert [a.source_ids.tolist() for a in first] != [a.source_ids.tolist() for a in other]


@pytest.mark.parametrize(("weight", "low", "high"), [(0.25, 30, 75), (2.0, 380, 400)])
def test_weights_say_how_often_a_pair_is_drawn(weight: float, low: int, high: int) -> None:
    batches = epoch_batches(corpus(200, weight), 120, START, PAD, seed=3)
    assert low <= sum(len(batch.source_ids) for batch in batches) <= high
    with pytest.raises(ValueError, match="weights"):
        list(epoch_batches(corpus(200, 0.0), 120, START, PAD, seed=3))
