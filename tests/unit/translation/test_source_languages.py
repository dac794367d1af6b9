"""Calls without a source language."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest, Path
from service.domain.translation import Flag, MimeType, TranslationRequest
from service.translation.source_languages import Part, parts_by_language, read_texts, unchanged

SOURCES = ["en", "fr"]


def request(*texts: str, prefixes: tuple[str, ...] = ()) -> TranslationRequest:
    return TranslationRequest(texts, "", "de", model="m", target_prefixes=prefixes)


def test_texts_of_one_language_go_together_in_order() -> None:
    parts = parts_by_language(
        request("a", "b", "1", "c", prefixes=("A", "B", "", "C")), ["fr", "en", "und", "fr"], SOURCES
    )
    assert [(part.request.source_language_code, part.indices) for part in parts] == [("fr", (0, 3)), ("en", (1,))]
    assert [part.request.texts for part in parts] == [("a", "c"), ("b",)]
    assert [part.request.target_prefixes for part in parts] == [("A", "C"), ("B",)]
    assert {(part.request.target_language_code, part.request.model) for part in parts} == {("de", "m")}


def test_prefixes_of_a_wrong_number_stay_for_who_refuses_them() -> None:
    (part,) = parts_by_language(request("a", "b", prefixes=("A",)), ["en", "en"], SOURCES)
    assert part.request.target_prefixes == ("A",)


def test_letters_of_no_language_are_refused() -> None:
    with pytest.raises(
        InvalidRequest, match=r"^texts\[1\] is in none of the languages that can be translated into 'de'"
    ) as raised:
        parts_by_language(request("1", "x"), ["und", "und"], SOURCES)
    assert raised.value.field == "texts[1]"
    assert parts_by_language(request("1", "-"), ["und", "und"], SOURCES) == []


def test_a_language_that_is_not_served_is_named_or_kept() -> None:
    texts = request("ciao", "1", "hello", "hallo", "ᚠᚢ")
    codes = ["it", "und", "en", "de", "und"]
    with pytest.raises(InvalidRequest) as raised:
        parts_by_language(texts, codes, SOURCES)
    assert str(raised.value) == (
        "texts[0] seems to be in 'it'; languages that can be translated into 'de' here: en, fr; "
        "give source_language_code if it is in one of these."
    )
    parts = parts_by_language(replace(texts, keeps_other_languages=True), codes, SOURCES)
    assert [(part.detected_language_code, part.indices, part.is_kept) for part in parts] == [
        ("it", (0,), True), ("en", (2,), False), ("de", (3,), False), ("und", (4,), True),
    ]  # fmt: skip
    for part in (parts[0], parts[2]):
        (answer,) = unchanged(part)
        assert answer.text == answer.hypotheses[0].text == part.request.texts[0]
        assert answer.detected_language_code == part.detected_language_code
        assert answer.segments[0].flags == (Flag.OTHER_LANGUAGE if part.is_kept else Flag.TARGET_LANGUAGE,)


@pytest.mark.parametrize("is_read", [True, False])
def test_segments_of_unchanged_html_count_without_tags(is_read: bool) -> None:
    html = request("<p>one <b>two</b></p>\n<p>three &amp; four</p>")
    html = replace(html, source_language_code="de", mime_type=MimeType.HTML)
    read = read_texts(html.texts, html.mime_type)
    documents = tuple(each.document for each in read if each.document is not None) if is_read else ()
    (answer,) = unchanged(Part(html, documents=documents))
    assert answer.text == html.texts[0]
    assert [(each.source_start, each.source_end, each.target_end) for each in answer.segments] == [(0, 19, 19)]


@pytest.mark.parametrize(
    ("path", "problem", "expected"),
    [
        (Path("texts", 1), "{path} has 9 tokens", ("texts[3]", "texts[3] has 9 tokens.")),
        (Path("target_prefixes", 0), "{path} is", ("target_prefixes[0]", "target_prefixes[0] is.")),
        (Path("target_prefixes", 1), "{path} is", ("target_prefixes[3]", "target_prefixes[3] is.")),
        (Path("options", "top_k"), "{path} is 0", ("options.top_k", "options.top_k is 0.")),
        (Path("texts"), "{path} is empty", ("texts", "texts is empty.")),
        (Path(), "no", ("", "no")),
    ],
)
def test_errors_name_texts_by_their_place_in_the_whole(path: Path, problem: str, expected: tuple[str, str]) -> None:
    parts = parts_by_language(request("a", "b", "c", "d"), ["fr", "en", "en", "fr"], SOURCES)
    error = InvalidRequest(problem, path)
    parts[0].name_in_whole(error)
    assert (error.field, str(error)) == expected


@given(st.lists(st.tuples(st.text(max_size=3), st.sampled_from(["en", "de", "fr"])), max_size=20))
@settings(derandomize=True, max_examples=50, deadline=None)
def test_nothing_is_lost_or_doubled(texts: list[tuple[str, str]]) -> None:
    parts = parts_by_language(request(*(text for text, _ in texts)), [code for _, code in texts], ["en", "fr"])
    placed = {
        index: (text, part.request.source_language_code)
        for part in parts
        for index, text in zip(part.indices, part.request.texts, strict=True)
    }
    assert [placed[index] for index in range(len(texts))] == texts
