from benchmarks.models import SHIPPED_CHECKPOINT
from benchmarks.workload import batches_by_length, held_out_texts, random_sources, spread


def test_spread_reaches_over_the_whole_list() -> None:
    assert spread(list(range(10)), 4) == [0, 2, 5, 7]
    assert spread([1, 2], 4) == [1, 2]


def test_batches_are_neighbours_in_length_and_lose_nothing() -> None:
    sources = [(1,) * length for length in (5, 1, 4, 2, 3)]
    batches = batches_by_length(sources, 2)
    assert [[len(source) for source in batch] for batch in batches] == [[1, 2], [3, 4], [5]]


def test_batches_do_not_depend_on_the_order_of_equal_lengths() -> None:
    assert batches_by_length([(2, 1), (1, 2)], 1) == batches_by_length([(1, 2), (2, 1)], 1)


def test_random_sources_are_ordinary_tokens_and_an_end() -> None:
    first, *_ = sources = random_sources(3, 25, 100, eos_id=2, seed=1)
    assert sources == random_sources(3, 25, 100, eos_id=2, seed=1)
    assert {len(source) for source in sources} == {25}
    assert first[-1] == 2
    assert all(8 <= token < 100 for token in first[:-1])


def test_the_shipped_sentences_are_there() -> None:
    texts = held_out_texts(SHIPPED_CHECKPOINT / "sentences.tsv")
    assert len(texts) == 500
    assert all(text and "\t" not in text for text in texts)
