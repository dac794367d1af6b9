"""Several calls in flight over one stream."""

import queue
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.cli.pipeline import MAX_CALLS, map_chunks, parts_of
from service.cli.streams import Line
from service.domain.translation import MAX_CHUNK_CHARACTERS, MAX_CHUNK_TEXTS, FinishReason, Translation
from tests.patience import patient


def lines_of(texts: list[str]) -> Any:
    return [Line(number, text, "\n") for number, text in enumerate(texts, start=1)]


def upper(chunk: list[Line]) -> Any:
    return [Translation(line.text.upper(), (), FinishReason.STOP, 1) for line in chunk]


def run(lines: Any, translate: Any = upper) -> Any:
    return [pair for chunk in map_chunks(lines, translate) for pair in chunk]


@given(st.lists(st.text(max_size=5), max_size=300), st.randoms(use_true_random=False))
@settings(derandomize=True, max_examples=40, deadline=None)
def test_order_is_kept_whatever_call_ends_first(texts: list[str], chance: random.Random) -> None:
    barrier = threading.Lock()

    def slow(chunk: list[Line]) -> Any:
        with barrier:
            wait = chance.random() * 0.002
        threading.Event().wait(wait)
        return upper(chunk)

    pairs = run(lines_of(texts), slow)
    assert [line.text for line, _ in pairs] == texts
    assert [translation.text for _, translation in pairs] == [text.upper() for text in texts]


def test_calls_overlap_but_are_bounded() -> None:
    lock, now, most, together = threading.Lock(), [0], [0], threading.Event()

    def counted(chunk: list[Line]) -> Any:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
            if now[0] == MAX_CALLS:
                together.set()
        together.wait(patient(5))
        with lock:
            now[0] -= 1
        return upper(chunk)

    run(lines_of(["x"] * MAX_CHUNK_TEXTS * 20), counted)
    assert most[0] == MAX_CALLS


def test_chunks_have_bounded_characters_and_longer_texts_go_alone() -> None:
    sizes = [
        MAX_CHUNK_CHARACTERS // 2,
        MAX_CHUNK_CHARACTERS // 2,
        1,
        2 * MAX_CHUNK_CHARACTERS,
        MAX_CHUNK_CHARACTERS - 1,
        1,
        1,
    ]
    called: list[int] = []

    def noted(chunk: list[Line]) -> Any:
        called.append(sum(len(line.text) for line in chunk))
        assert len(chunk) == 1 or called[-1] <= MAX_CHUNK_CHARACTERS
        return upper(chunk)

    pairs = run(lines_of(["x" * size for size in sizes]), noted)
    assert [len(line.text) for line, _ in pairs] == sizes


def test_input_is_not_read_far_ahead() -> None:
    read, release = [0], threading.Event()

    def endless() -> Iterator[Any]:
        while True:
            read[0] += 1
            yield Line(read[0], "x", "\n")

    def stuck(chunk: list[Line]) -> Any:
        release.wait(patient(10))
        return upper(chunk)

    chunks = map_chunks(endless(), stuck)
    threading.Timer(0.3, release.set).start()
    next(chunks)
    assert read[0] < 4 * MAX_CALLS * MAX_CHUNK_TEXTS


def test_a_slow_writer_sees_each_line_at_once() -> None:
    typed: queue.Queue[Line | None] = queue.Queue()
    chunks = map_chunks(iter(typed.get, None), upper)
    for number in range(1, 4):
        typed.put(Line(number, "x", "\n"))
        assert [line.number for line, _ in next(chunks)] == [number]
    typed.put(None)
    assert next(chunks, None) is None


def test_what_was_read_before_an_error_comes_out_first() -> None:
    def broken() -> Iterator[Any]:
        yield from lines_of(["a", "b"])
        raise ValueError("no more")

    seen: list[str] = []
    chunks = map_chunks(broken(), upper)
    with pytest.raises(ValueError, match="no more"):
        seen.extend(translation.text for chunk in chunks for _, translation in chunk)
    assert seen == ["A", "B"]


def test_a_failed_call_ends_it_in_its_place() -> None:
    def picky(chunk: list[Line]) -> Any:
        if any(line.text == "bad" for line in chunk):
            raise ValueError("bad")
        threading.Event().wait(random.Random(0).random() * 0.01)
        return upper(chunk)

    texts = ["x"] * MAX_CHUNK_TEXTS * 3 + ["bad"] + ["x"] * MAX_CHUNK_TEXTS * 3
    seen: list[tuple[Line, Translation]] = []
    chunks = map_chunks(lines_of(texts), picky)
    with pytest.raises(ValueError, match="bad"):
        seen.extend(pair for chunk in chunks for pair in chunk)
    assert len(seen) <= MAX_CHUNK_TEXTS * 3
    assert all(line.text == "x" for line, _ in seen)


@given(st.text(alphabet="ab. ?!。\u00e9", max_size=300), st.integers(1, 40))
def test_parts_of_a_text_are_short_and_all_of_it(text: str, longest: int) -> None:
    parts = list(parts_of(text, "en", longest))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= longest


def test_parts_end_with_sentences_or_else_with_words() -> None:
    assert list(parts_of("One two. Three four. Five.", "en", 22)) == ["One two. Three four. ", "Five."]
    assert list(parts_of("One two. Three four five six. Seven.", "en", 12)) == [
        "One two. ", "Three four ", "five six. ", "Seven.",
    ]  # fmt: skip
    assert list(parts_of("abcdefgh", "", 3)) == ["abc", "def", "gh"]
