"""DeepL's messages of translation, and the parameters of its calls."""

from typing import Any

import pytest

from service.domain.errors import InvalidRequest, TooMany, Unimplemented
from service.domain.translation import MimeType, SplitSentences
from service.faces.deepl import messages
from service.faces.deepl.messages import TranslateParameters, parameters_in
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import checked
from service.faces.http.languages import ListedLanguage

LANGUAGES = [
    ListedLanguage("de", "German", ["en"]),
    ListedLanguage("en", "English", ["de", "zh-Hant"]),
    ListedLanguage("zh-Hant", "Chinese (Traditional)", []),
]


def asked(**parameters: Any) -> messages.TranslateParameters:
    return checked({"text": ["a"], "target_lang": "DE", **parameters}, messages.TranslateParameters)


def test_names_of_tags_are_lists_or_separated_by_commas() -> None:
    assert asked(ignore_tags="a, b,").ignore_tags == ["a", "b"]
    assert asked(ignore_tags=["a", "b,c"]).ignore_tags == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("parameters", "field", "expected"),
    [
        ({}, "split_sentences", SplitSentences.ON),
        ({"split_sentences": "0"}, "split_sentences", SplitSentences.OFF),
        ({"split_sentences": 0}, "split_sentences", SplitSentences.OFF),
        ({"split_sentences": "1", "tag_handling": "html"}, "split_sentences", SplitSentences.ON),
        ({"split_sentences": "nonewlines"}, "split_sentences", SplitSentences.NO_NEWLINES),
        ({"tag_handling": "html"}, "split_sentences", SplitSentences.NO_NEWLINES),
        ({"tag_handling": "xml"}, "split_sentences", SplitSentences.ON),
        ({"preserve_formatting": "0"}, "preserve_formatting", False),
        ({"preserve_formatting": True}, "preserve_formatting", True),
        ({"preserve_formatting": None}, "preserve_formatting", False),
        ({"text": "a"}, "texts", ("a",)),
        ({}, "glossary", "products"),
    ],
)
def test_what_is_asked_for(parameters: dict[str, Any], field: str, expected: object) -> None:
    body = asked(**parameters)
    request = messages.request_from(body, messages.marked_texts(body), "products", 1.0)
    assert getattr(request, field) == expected


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"formality": "more"}, InvalidRequest, "'formality' is not supported for given 'target_lang'"),
        ({"style_id": "x"}, Unimplemented, "'style_id' is not supported"),
        ({"custom_instructions": ["x"]}, Unimplemented, "'custom_instructions'"),
        ({"translation_memory_id": "x"}, Unimplemented, "'translation_memory_id'"),
        ({"glossary_id": "x"}, InvalidRequest, "source_lang"),
        ({"glossary_ids": ["x"]}, InvalidRequest, "source_lang"),
        ({"glossary_ids": ["x", "y"], "source_lang": "EN"}, Unimplemented, "one glossary"),
        ({"glossary_ids": ["x"], "glossary_id": "y", "source_lang": "EN"}, InvalidRequest, "both given"),
        ({"ignore_tags": "x"}, InvalidRequest, "tag_handling"),
        ({"split_sentences": "2"}, InvalidRequest, "split_sentences is '2'"),
        ({"splitting_tags": ["x"] * 1025}, TooMany, "splitting_tags"),
        ({"text": ["x"] * 1025}, TooMany, "1025"),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        messages.check_parameters(asked(**parameters))


def test_what_has_no_effect_is_accepted() -> None:
    body = asked(
        formality="prefer_less",
        context="c",
        model_type="latency_optimized",
        splitting_tags="x",
        enable_beta_languages=True,
        glossary_id="",
        custom_instructions=[],
        anything="else",
    )
    messages.check_parameters(body)
    assert messages.glossary_of(body) == ""


def test_plain_texts_and_html_stay_as_they_are() -> None:
    for parameters, mime_type in (({}, MimeType.PLAIN), ({"tag_handling": "html"}, MimeType.HTML)):
        marked = messages.marked_texts(asked(text=["a <b>", "c"], **parameters))
        assert (marked.texts, marked.mime_type) == (("a <b>", "c"), mime_type)
        assert marked.restored(["x", "y"]) == ["x", "y"]


def test_tags_come_back() -> None:
    for handling in ("html", "xml"):
        text = "<a>one</a><x>two</x>"
        marked = messages.marked_texts(asked(text=[text, "b"], tag_handling=handling, ignore_tags=["x"]))
        assert marked.mime_type is MimeType.HTML
        assert marked.restored(marked.texts) == [text, "b"]
        assert "translate=" in marked.texts[0]


def test_the_text_that_is_no_xml_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"texts\[1\] is not well-formed XML") as raised:
        messages.marked_texts(asked(text=["a", "<secret>"], tag_handling="xml"))
    assert "secret" in str(raised.value)
    assert "secret" not in raised.value.redacted


def test_targets_have_the_variants_that_deepl_s_clients_ask_for() -> None:
    assert messages.languages_document(LANGUAGES, "source") == [
        {"language": "DE", "name": "German"},
        {"language": "EN", "name": "English"},
    ]
    targets = messages.languages_document(LANGUAGES, "target")
    assert [each["language"] for each in targets] == ["DE", "EN-GB", "EN-US", "ZH-HANT"]
    assert [each["name"] for each in targets][1:] == [
        "English (United Kingdom)",
        "English (United States)",
        "Chinese (Traditional)",
    ]
    assert not any(each["supports_formality"] for each in targets)


@pytest.mark.parametrize(
    ("resource", "variants"),
    [
        ("glossary", [("en", True, True)]),
        ("translate_text", [("en", True, False), ("en-GB", False, True), ("en-US", False, True)]),
    ],
)
def test_languages_of_texts_have_variants_and_those_of_glossaries_none(resource: str, variants: Any) -> None:
    parameters = checked({"resource": resource}, messages.LanguagesOfResourceParameters)
    listed = messages.languages_of_resource_document(LANGUAGES, parameters.resource)
    found = [(each["lang"], each["usable_as_source"], each["usable_as_target"]) for each in listed]
    assert found == [("de", True, True), *variants, ("zh-Hant", False, True)]
    with pytest.raises(InvalidRequest, match="resource is 'voice'"):
        checked({"resource": "voice"}, messages.LanguagesOfResourceParameters)


FORM = {"content-type": "application/x-www-form-urlencoded"}


def form(body: str, query: str = "") -> HttpRequest:
    return HttpRequest("POST", "/v2/translate", FORM, body.encode(), query)


def test_a_body_counts_before_a_query() -> None:
    request = form("text=a&target_lang=DE", "target_lang=FR")
    assert parameters_in(request, TranslateParameters).target_lang == "DE"


def test_other_types_of_bodies_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="Content-Type is 'text/plain'"):
        parameters_in(HttpRequest("POST", "/", {"content-type": "text/plain"}, b"text=a"), TranslateParameters)
    with pytest.raises(InvalidRequest, match="text is missing"):
        parameters_in(form("target_lang=DE"), TranslateParameters)
