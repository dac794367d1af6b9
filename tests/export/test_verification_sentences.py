"""How many sentences a model of some size is verified on."""

import pytest

from export.verification_sentences import LEAST_TOKENS, MAX_WORK, Sentence, bounded
from service.bundle.manifest_parts import LanguagePair

SENTENCES = [Sentence(LanguagePair("en", "de"), (number,) * (4 + number % 20), 96) for number in range(64)]
TOKENS = sum(len(each.source_ids) + each.max_output_tokens for each in SENTENCES)


@pytest.mark.parametrize("num_weights", [10_000_000, 75_000_000, 236_000_000, 615_000_000, 3_300_000_000])
def test_the_work_is_bounded(num_weights: int) -> None:
    """What is left is most of what is allowed, from the whole list, with outputs that are worth a test."""
    chosen = bounded(SENTENCES, num_weights)
    tokens = sum(len(each.source_ids) + each.max_output_tokens for each in chosen)
    allowed = max(MAX_WORK / num_weights, LEAST_TOKENS)
    assert tokens <= allowed
    if allowed < TOKENS:
        assert tokens > 0.6 * allowed
        assert chosen[0].source_ids[0] == 0
        assert chosen[-1].source_ids[0] >= len(SENTENCES) // 2
        assert all(each.max_output_tokens >= 8 for each in chosen)


def test_small_models_get_all() -> None:
    """Of as many sentences as there are for two languages, the base shape too."""
    assert bounded(SENTENCES, 25_000_000) == SENTENCES
    assert bounded(SENTENCES[:20], 75_000_000) == SENTENCES[:20]
    assert bounded([], 25_000_000) == []


def test_one_is_left_for_a_model_of_any_size() -> None:
    """A bundle needs a golden sentence."""
    long = Sentence(LanguagePair("en", "de"), (5,) * 2 * LEAST_TOKENS, 96)
    assert len(bounded([long, long], 10**15)) == 1
