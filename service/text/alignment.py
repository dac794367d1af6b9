"""Word alignment of a source and its translation, computed from a model's attention; pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from service.domain.translation import AlignedSpan
from service.text.spans import TokenSpan
from service.text.words import is_word, words

_LITTLE = 0.05  # share of a word's attention below which there is no link
_MUCH = 0.4  # share that is enough for a link in addition to the best one
_ENOUGH = 0.2  # share that is enough to link a source word that would otherwise have no link

_Floats = npt.NDArray[np.floating[Any]]


def align_words(
    attention: _Floats, source: str, source_spans: Sequence[TokenSpan], target: str, target_spans: Sequence[TokenSpan]
) -> tuple[AlignedSpan, ...]:
    """Return links between words (`words`), in the order of the translation; a word may have several links or none.

    `attention` (T, S) is how much each token of the translation attended to each token of the source; the spans give
    their positions, and tokens with an empty one, such as special ones, do not count.

    Every word of the translation is linked to the source word that it attended to most, and to another one with much of
    its attention. A source word without a link is linked to the word that attended to it most, if that was enough.
    Punctuation is linked only to punctuation. Numbers, names and reserved symbols that occur once on both sides are
    linked to each other.
    """
    source_words, target_words = words(source, source_spans), words(target, target_spans)
    if not source_words or not target_words:
        return ()
    in_source = [source[start:end] for start, end in source_words]
    in_target = [target[start:end] for start, end in target_words]
    by_word: _Floats = _shares(target_words, target_spans) @ attention @ _shares(source_words, source_spans).T
    by_word *= np.equal.outer(list(map(is_word, in_target)), list(map(is_word, in_source)))
    links = _links(by_word)
    for at_target, at_source in _kept(in_source, in_target):
        links[at_target, :] = links[:, at_source] = False
        links[at_target, at_source] = True
    return tuple(
        AlignedSpan(*source_words[at_source], *target_words[at_target])
        for at_target, at_source in np.argwhere(links).tolist()
    )


def _shares(found: Sequence[TokenSpan], tokens: Sequence[TokenSpan]) -> _Floats:
    """Return (words, tokens): for each token, the share of its characters within words that belongs to each word."""
    starts, ends = np.array(found, np.int64).T[:, :, None]
    token_starts, token_ends = np.array(tokens, np.int64).reshape(-1, 2).T
    common = np.minimum(ends, token_ends) - np.maximum(starts, token_starts)
    shares = np.maximum(common, 0).astype(np.float32)
    covered: _Floats = shares / np.maximum(shares.sum(axis=0), 1)
    return covered


def _links(by_word: _Floats) -> npt.NDArray[np.bool_]:
    total = by_word.sum(axis=1, keepdims=True)
    by_word = np.divide(by_word, total, out=np.zeros_like(by_word), where=total > _LITTLE)
    links: npt.NDArray[np.bool_] = by_word >= np.clip(by_word.max(axis=1, keepdims=True), _LITTLE, _MUCH)
    best = by_word.argmax(axis=0)
    for at_source in np.flatnonzero(~links.any(axis=0)):
        links[best[at_source], at_source] = by_word[best[at_source], at_source] >= _ENOUGH
    return links


def _kept(in_source: Sequence[str], in_target: Sequence[str]) -> list[tuple[int, int]]:
    """Return (target word, source word) of numbers, names and reserved symbols that occur once on each side."""
    source_counts, target_counts = Counter(in_source), Counter(in_target)
    return [
        (at_target, in_source.index(word))
        for at_target, word in enumerate(in_target)
        if source_counts[word] == target_counts[word] == 1 and is_word(word) and not (word.isalpha() and word.islower())
    ]
