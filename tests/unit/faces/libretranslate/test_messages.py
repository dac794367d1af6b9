"""LibreTranslate's messages to domain types and back."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from service.domain.errors import InvalidRequest, TooMany
from service.domain.translation import DetectedLanguage, FinishReason, Hypothesis, Translation
from service.faces.http.application import FormPart, HttpRequest
from service.faces.http.languages import ListedLanguage
from service.faces.libretranslate import messages
from service.text.languages import ServedLanguages

ASKED = {"q": "station", "source": "en", "target": "de"}
FORM = "application/x-www-form-urlencoded"
LANGUAGES = [
    ListedLanguage("en", "English", ["pt-BR", "zh", "zh-Hant"]),
    ListedLanguage("pt-BR", "Portuguese (Brazil)", []),
    ListedLanguage("zh", "Chinese", ["en"]),
    ListedLanguage("zh-Hant", "Chinese (Traditional)", []),
]


def in_json(document: Any) -> HttpRequest:
    return HttpRequest("POST", "/translate", {"content-type": "application/json"}, json.dumps(document).encode())


def in_form(fields: list[tuple[str, str]], query: str = "") -> HttpRequest:
    return HttpRequest("POST", "/translate", {"content-type": FORM}, urlencode(fields).encode(), query)


def in_multipart(fields: list[tuple[str, str]]) -> HttpRequest:
    parts = [FormPart(name, None, value.encode()) for name, value in fields]
    parts.append(FormPart("q", "a.txt", b"not a field"))
    return HttpRequest("POST", "/translate", {"content-type": "multipart/form-data; boundary=b"}, form=parts)


def parameters(**changes: Any) -> messages.Parameters:
    body = messages.body_of(in_json({**ASKED, **changes}), messages.TranslateBody)
    return messages.parameters_of(body, 12.5)


def translation(text: str, *others: str, detected: str = "") -> Translation:
    hypotheses = tuple(Hypothesis(each) for each in (text, *others))
    return Translation(text, hypotheses, FinishReason.STOP, 1, detected_language_code=detected)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("auto", ""),
        ("AUTO", ""),
        ("zt", "zh-Hant"),
        ("PB", "pt-BR"),
        ("zh-Hans", "zh-Hans"),
        ("zh", "zh"),
        ("en", "en"),
    ],
)
def test_languages_have_our_codes(theirs: str, ours: str) -> None:
    assert parameters(source=theirs).request.source_language_code == ours
    assert parameters(target="auto").request.target_language_code == "auto"  # which no model has


@pytest.mark.parametrize(("given", "number"), [("3", 3), (3.0, 3), (3, 3), (-3, 0)])
def test_a_number_may_be_a_text_and_less_than_none(given: Any, number: int) -> None:
    assert parameters(alternatives=given).num_alternatives == number


@pytest.mark.parametrize(
    ("request_", "texts"),
    [
        (HttpRequest("POST", "/detect", {}, b"", "q=Gr%C3%BC%C3%9Fe"), "Grüße"),
        (in_form([("q[]", "a\r\nb")]), ["a\nb"]),
        (in_form([("q", "c")], query="q=a%0Ab"), ["a\nb", "c"]),
        (in_multipart([("q", "a\r\nb"), ("q", "c")]), ["a\nb", "c"]),
        (in_multipart([("q[]", "a\r\nb")]), ["a\nb"]),
        *(
            (HttpRequest("POST", "/detect", {"content-type": kind}, b'\n{"q": "a"}'), "a")
            for kind in ("", "text/plain;charset=UTF-8", "application/vnd.api+json", "text/json")
        ),
    ],
)
def test_texts_are_found_in_a_query_in_entries_and_in_json_of_any_type(request_: HttpRequest, texts: Any) -> None:
    assert messages.body_of(request_, messages.DetectBody).q == texts


def test_a_query_counts_before_a_form() -> None:
    request = in_form([("q", "a"), ("source", "fr")], query="source=en&target=de")
    assert messages.body_of(request, messages.TranslateBody).source == "en"


def test_a_body_of_another_type_is_refused() -> None:
    request = HttpRequest("POST", "/detect", {"content-type": "text/plain"}, b"a")
    with pytest.raises(InvalidRequest, match="Content-Type is 'text/plain'; allowed: application/json, "):
        messages.body_of(request, messages.DetectBody)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"q": 5}, "q is 5; allowed: a text or a list of texts."),
        ({"source": ["en"]}, "source is a list; allowed: a string."),
        ({"format": "xml"}, "format is 'xml'; allowed: text, html."),
        ({"alternatives": 8}, "alternatives is 8; allowed: 0 to 7."),
        ({"alternatives": "many"}, "alternatives is 'many'; allowed: a whole number."),
        ({"alternatives": 1.5}, "alternatives is 1.5; allowed: a whole number."),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parameters(**changes)
    assert str(raised.value) == message
    with pytest.raises(TooMany, match="q has 1025 entries"):
        parameters(q=["a"] * 1025)


def test_a_text_is_answered_by_a_text_and_a_list_by_a_list() -> None:
    for texts, answer in (("x", "a"), (["x"], ["a"])):
        assert messages.answer_document(parameters(q=texts), [translation("a")], ()) == {"translatedText": answer}


def test_alternatives_differ_from_the_translation_and_each_other() -> None:
    found = [translation("a", "b", "a", "c", "b"), translation("d")]
    assert messages.answer_document(parameters(alternatives=4), found[:1], ())["alternatives"] == ["b", "c"]
    document = messages.answer_document(parameters(q=["x", "y"], alternatives=4), found, ())
    assert document == {"translatedText": ["a", "d"], "alternatives": [["b", "c"], []]}


def test_the_detected_language_comes_with_its_confidence_among_all() -> None:
    detected = [
        (DetectedLanguage("fr", 0.9), DetectedLanguage("en", 0.097)),
        (DetectedLanguage("de", 1.0),),
        (DetectedLanguage("zh", 0.996),),
        (DetectedLanguage("und", 0.0),),
    ]
    found = [translation("a", detected=code) for code in ("en", "en", "zh", "und")]
    document = messages.answer_document(parameters(q=["x"] * 4, source="auto"), found, detected)
    assert document["detectedLanguage"] == [
        {"confidence": 10.0, "language": "en"},
        {"confidence": 0.0, "language": "en"},
        {"confidence": 100.0, "language": "zh-Hans"},
        {"confidence": 0.0, "language": "en"},
    ]
    alone = messages.answer_document(parameters(source="auto"), found[:1], detected[:1])
    assert alone["detectedLanguage"] == {"confidence": 10.0, "language": "en"}


def test_detections_are_in_per_cent_and_as_floats() -> None:
    found = messages.detections_document(
        [DetectedLanguage("zh", 0.714), DetectedLanguage("de", 0.006), DetectedLanguage("fr", 0.004)], ["de", "zh"]
    )
    for served, code in ((["de", "en"], "en"), (["de", "fr"], "auto")):
        und = messages.detections_document([DetectedLanguage("und", 0.0)], served)
        assert und == [{"confidence": 0.0, "language": code}]
    assert json.dumps(found) == '[{"confidence": 71.0, "language": "zh-Hans"}, {"confidence": 1.0, "language": "de"}]'


def test_listed_languages_have_their_codes() -> None:
    listed = messages.languages_document(LANGUAGES)
    assert listed[0] == {"code": "en", "name": "English", "targets": ["pt-BR", "zh-Hans", "zh-Hant"]}
    assert [each["code"] for each in listed] == ["en", "pt-BR", "zh-Hans", "zh-Hant"]
    served = ServedLanguages(each.code for each in LANGUAGES)
    for each, language in zip(listed, LANGUAGES, strict=True):  # they mean the same when they come back
        assert served.find(parameters(source=each["code"]).request.source_language_code)[0].code == language.code


def test_settings_name_a_language_that_can_be_translated_into() -> None:
    for languages in (LANGUAGES, LANGUAGES[1:]):
        settings = messages.settings_document(languages, 5000, [".md"], asks_for_keys=True)
        assert settings["language"]["target"] == {"code": "en", "name": "English"}
    told = ("charLimit", "apiKeys", "keyRequired", "suggestions", "filesTranslation", "supportedFilesFormat")
    assert [settings[name] for name in told] == [5000, True, True, False, True, [".md"]]
    settings = messages.settings_document([], 5000, [], asks_for_keys=False)
    assert settings["language"]["source"]["code"] == "auto"
    assert [settings[name] for name in told[3:]] == [False, False, []]
