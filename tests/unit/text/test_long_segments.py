"""Segments that are too long for a model."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.long_segments import chunks, split_long


def num_words(text: str) -> int:
    return len(text.split())


def num_bytes(text: str) -> int:
    return len(text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two three. Four five, six seven", ["One two three. ", "Four five, six seven"]),
        ("One two, three; four five six, seven", ["One two, three; ", "four five six, seven"]),
        ("One two three – four five six, seven", ["One two three – ", "four five six, seven"]),
        ("One two three, four five six seven", ["One two three, ", "four five six seven"]),
        ("One (two three four) five six seven", ["One (two three four) ", "five six seven"]),
        ("One two three four five six seven", ["One two three ", "four five six seven"]),
        ("“One two three.” Four five six seven", ["“One two three.” ", "Four five six seven"]),
        ("At 10:30 one two 1,000 three four", ["At 10:30 one two ", "1,000 three four"]),
        ("One two three four five six", ["One two three four five six"]),
        ("", [""]),
    ],
)
def test_the_best_place_is_taken(text: str, expected: list[str]) -> None:
    assert split_long(text, num_words, 6) == expected


def test_texts_without_spaces_are_cut_after_their_marks_and_others_in_the_middle() -> None:
    assert split_long("我们今天去公园，因为天气很好", len, 10) == ["我们今天去公园，", "因为天气很好"]
    pieces = split_long("word " * 130, num_words, 128)
    assert [num_words(piece) for piece in pieces] == [65, 65]
    pieces = split_long("word " * 1000, num_words, 128)
    assert [num_words(piece) for piece in pieces] == [125] * 8


def test_a_word_of_10_000_characters_is_cut() -> None:
    counted: list[str] = []

    def length(text: str) -> int:
        counted.append(text)
        return len(text)

    pieces = split_long("a" * 10_000, length, 128)
    assert "".join(pieces) == "a" * 10_000
    assert len(pieces) == 79
    assert len(counted) <= 2 * len(pieces)


@pytest.mark.parametrize("character", ["e\u0301", "👩‍👩‍👧", "🇩🇪", "👍🏽", "क्षि", "각", "\r\n", "☂\ufe0f"])
def test_characters_stay_whole(character: str) -> None:
    text = "ab" + "x" * 13 + character + "x" * 14
    for limit in range(len(text) // 2, len(text)):
        pieces = split_long(text, len, limit)
        assert "".join(pieces) == text
        assert any(character in piece for piece in pieces)


def test_what_is_whole_is_cut_only_if_it_is_too_long_itself() -> None:
    text = "Look at <a title='one two three four'> now"
    whole = [(8, 38)]
    assert split_long(text, len, 32, whole) == ["Look at ", "<a title='one two three four'> ", "now"]
    assert split_long(text, len, 32) == ["Look at <a title='one ", "two three four'> now"]
    pieces = split_long(text, len, 20, whole)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 20


def test_what_can_not_be_cut_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^'ä' has 2 tokens; at most 1 are allowed, and it can't be cut\.$"):
        split_long("ä", num_bytes, 1)
    with pytest.raises(ValueError, match="has 2 tokens"):
        split_long("abcä", num_bytes, 1)


_TEXTS = st.lists(
    st.sampled_from([" ", ". ", ", ", "; ", " – ", "word", "。", "，", ") ", "e\u0301", "\u200d", "\n"])
    | st.text(max_size=4)
).map("".join)


@given(_TEXTS, st.integers(4, 30), st.sampled_from([len, num_bytes, num_words]), st.data())
def test_pieces_are_short_enough_and_joined_the_text(text: str, limit: int, num_tokens, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    bounds = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    whole = list(zip(bounds[::2], bounds[1::2], strict=False))
    pieces = split_long(text, num_tokens, limit, whole)
    assert "".join(pieces) == text
    assert all(num_tokens(piece) <= limit for piece in pieces)
    assert all(pieces) or pieces == [""]


@given(_TEXTS, st.randoms(use_true_random=False))
def test_any_count_of_tokens_ends(text: str, random) -> None:  # type: ignore[no-untyped-def]
    def whatever(piece: str) -> int:
        return int(random.randint(0, 3)) if len(piece) > 1 else 1

    assert "".join(split_long(text, whatever, 1)) == text


@given(
    st.text(alphabet="ab,. 漢e\u0301\u200d", max_size=300),
    st.integers(16, 64),
    st.lists(st.integers(0, 300), max_size=8, unique=True),
)
def test_chunks_are_the_text_within_bounds_and_leave_spans_whole(text: str, size: int, ends: list[int]) -> None:
    places = sorted(min(end, len(text)) for end in ends)
    whole = [(start, end) for start, end in zip(places[::2], places[1::2], strict=False) if start < end]
    found = list(chunks(text, size, whole))
    assert "".join(found) == text
    cuts = {0, *itertools.accumulate(map(len, found))}
    longer = {span for span in whole if span[1] - span[0] > size // 8}
    for start, end in itertools.pairwise(sorted(cuts)):
        assert end - start <= size or (start, end) in longer
    for start, end in whole:
        assert not any(start < cut < end for cut in cuts)


def test_chunks_end_where_sentences_do() -> None:
    text = "One two three. " * 20
    assert {piece[-2:] for piece in chunks(text, 128)} == {". "}
    assert {piece[-1:] for piece in chunks("word " * 100, 64)} == {" "}
