"""Pairs of sentences: how they are read, and in which batches they are shown."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from export.training.batches import epoch_batches
from export.training.corpus import EncodedCorpus, Pair, WeightedPair, add_noise, hold_out, read_pairs, without_sources
from export.training.placeholders import reserved_symbols
from export.training.recipe import NoiseRecipe

NOISE = NoiseRecipe(
    no_final_punctuation=0.0,
    lower_case=0.1,
    upper_case=0.2,
    title_case=0.0,
    leading_mark=0.1,
    symbol_pair=0.0,
    item=0.0,
    joined=0.0,
)


def test_reads_plain_and_compressed_files_alike(tmp_path: Path) -> None:
    text = "a cat\teine Katze\ttatoeba\nline\u2028separators\tsind keine\n"
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(text.encode()))
    expected = [Pair("a cat", "eine Katze", "tatoeba"), Pair("line\u2028separators", "sind keine", "")]
    assert read_pairs(tmp_path / "a.tsv") == expected
    assert read_pairs(tmp_path / "a.tsv.xz") == expected


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nno tab\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        read_pairs(tmp_path / "a.tsv")


def test_no_held_out_sentence_is_trained_on() -> None:
    pairs = [Pair(f"s{i % 50}", f"t{i}", "") for i in range(100)]  # every source occurs twice
    training, validation = hold_out(pairs, 10, seed=0)
    assert len(validation) == 10
    assert not {pair.source for pair in training} & {pair.source for pair in validation}


def test_a_sentence_of_another_file_is_found_by_its_source() -> None:
    assert without_sources([Pair("a", "b", "x"), Pair("c", "d", "x")], [Pair("a", "e", "y")]) == [Pair("c", "d", "x")]


def test_noisy_copies_take_their_share_of_the_weight() -> None:
    pairs = [WeightedPair("A house", "Ein Haus", 1.0)] * 500
    noisy = add_noise(pairs, NOISE, reserved_symbols(4), seed=1)
    assert sum(pair.weight for pair in noisy) == pytest.approx(500)
    weights = {"a house": 0.0, "A HOUSE": 0.0, "A house": 0.0}
    for pair in noisy:
        weights[pair.source] = weights.get(pair.source, 0.0) + pair.weight
    assert weights["A house"] == pytest.approx(300)
    assert weights["a house"] == pytest.approx(50, abs=15)
    assert weights["A HOUSE"] == pytest.approx(100, abs=20)


def test_what_is_drawn_often_is_drawn_in_many_forms() -> None:
    noisy = add_noise([WeightedPair("A house", "Ein Haus", 20.0)], NOISE, reserved_symbols(4), seed=1)
    assert [pair.weight for pair in noisy] == pytest.approx([12.0] + [1.0] * 8)


def test_a_pair_that_noise_does_not_change_keeps_its_weight() -> None:
    pairs = [WeightedPair("1", "1", 1.0)]
    only_case = NoiseRecipe(0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert add_noise(pairs, only_case, (), seed=1) == pairs
    assert add_noise(pairs, NoiseRecipe(*[0.0] * 8), (), seed=1) == pairs


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
