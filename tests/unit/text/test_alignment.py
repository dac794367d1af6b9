"""From attention to aligned words of the same meaning."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.text.alignment import align_words
from service.text.spans import TokenSpan, consecutive
from service.text.words import is_word, words

NONE = (0, 0)


def pieces(*texts: str) -> tuple[str, list[TokenSpan]]:
    return "".join(texts), consecutive(map(len, texts))


def linked(
    attention: list[list[float]], source: tuple[str, list[TokenSpan]], target: tuple[str, list[TokenSpan]]
) -> list[str]:
    array = np.array(attention, np.float32)
    links = align_words(array, *source, *target)
    assert list(links) == sorted(links, key=lambda link: (link.target_start, link.source_start))
    return [
        f"{target[0][link.target_start : link.target_end]}~{source[0][link.source_start : link.source_end]}"
        for link in links
    ]


def test_tokens_grow_to_words_and_special_tokens_are_left_out() -> None:
    source, spans = pieces("Clo", "se", " the", " door", ".")
    target = pieces("Schließ", "en", " Sie", " die", " Tür", ".")
    attention = [
        [0.0, 0.7, 0.1, 0.1, 0.1, 0.0, 0.0],
        [0.0, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1],
        [0.0, 0.1, 0.1, 0.1, 0.0, 0.0, 0.7],  # nearly all goes to the end of the sentence
        [0.0, 0.0, 0.0, 0.9, 0.1, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.1, 0.9, 0.0, 0.0],
        [0.0, 0.2, 0.0, 0.0, 0.2, 0.2, 0.4],
    ]
    expected = ["Schließen~Close", "Sie~Close", "die~the", "Tür~door", ".~."]
    assert linked(attention, (source, [NONE, *spans, NONE]), target) == expected


def test_one_word_may_be_two_and_one_that_nobody_chose_is_linked_if_it_got_enough() -> None:
    source, target = pieces("the", " train", " station"), pieces("der", " Bahnhof")
    assert linked([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]], source, target) == ["der~the", "Bahnhof~train", "Bahnhof~station"]
    source, target = pieces("very", " big"), pieces("riesig")
    assert linked([[0.3, 0.7]], source, target) == ["riesig~very", "riesig~big"]
    assert linked([[0.1, 0.9]], source, target) == ["riesig~big"]


def test_names_numbers_and_symbols_are_linked_whatever_attention_says() -> None:
    source, target = pieces("Anna", " has", " 12", " \ue000"), pieces("\ue000", " 12", " hat", " Anna")
    wrong = [[0.1, 0.1, 0.7, 0.1], [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]]
    assert linked(wrong, source, target) == ["\ue000~\ue000", "12~12", "hat~has", "Anna~Anna"]
    twice = pieces("12", " has", " 12", " \ue000")  # attention decides which one is meant
    assert "12~12" not in linked([[0, 0, 0, 1.0], [0, 1.0, 0, 0], [0, 1.0, 0, 0], [0, 1.0, 0, 0]], twice, target)


def test_nothing_to_align() -> None:
    empty: tuple[str, list[TokenSpan]] = ("", [])
    assert linked([[0.5, 0.5]], pieces("a", " b"), (" ", [(0, 1)])) == []
    assert align_words(np.zeros((0, 2), np.float32), *pieces("a", " b"), *empty) == ()
    assert align_words(np.zeros((2, 0), np.float32), *empty, *pieces("a", " b")) == ()
    assert linked([[0.0, 0.0]], pieces("a", " b"), pieces("x")) == []


@given(data=st.data())
def test_links_are_between_words_of_both_texts(data: st.DataObject) -> None:
    piece = st.text("ab1. ,A\ue000\u4e2d", max_size=4)
    (source, source_spans), (target, target_spans) = (
        pieces(*data.draw(st.lists(piece, min_size=1, max_size=8))) for _ in range(2)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    attention = rng.dirichlet(np.ones(len(source_spans)), len(target_spans)).astype(np.float32)
    links = align_words(attention, source, source_spans, target, target_spans)
    assert len(set(links)) == len(links)
    source_words, target_words = words(source, source_spans), words(target, target_spans)
    for link in links:
        ours, theirs = (link.source_start, link.source_end), (link.target_start, link.target_end)
        assert ours in source_words
        assert theirs in target_words
        assert is_word(source[slice(*ours)]) == is_word(target[slice(*theirs)])
