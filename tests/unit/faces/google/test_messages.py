"""Google's messages to domain types and back, and resource names in Google's form."""

import itertools
from typing import Any

import pytest

from service.domain.errors import (
    InvalidRequest,
    NotFound,
    Overloaded,
    PairNotFound,
    Path,
    ServiceError,
    TooLong,
    Unimplemented,
)
from service.domain.translation import FinishReason, Hypothesis, Term, Translation
from service.faces.google import messages as messages
from service.faces.google import names as names
from service.faces.google import v2
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.text.glossary import Glossary

PARENT = "projects/p/locations/l"
GLOSSARY = f"{PARENT}/glossaries/terms"


def asked(**changes: Any) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(**({"parent": PARENT, "contents": ["a"], "target_language_code": "de"} | changes))


def translation(text: str, reason: FinishReason = FinishReason.STOP, detected: str = "") -> Translation:
    return Translation(text, (Hypothesis(text, None, 1),), reason, 1, detected_language_code=detected)


def test_options_that_are_not_supported_are_refused_and_only_if_they_are_on() -> None:
    with pytest.raises(Unimplemented, match="transliteration_config"):
        messages.request_from_pb(asked(transliteration_config={"enable_transliteration": True}), 0.0)
    contextual = {"glossary": GLOSSARY, "contextual_translation_enabled": True}
    with pytest.raises(Unimplemented, match="contextual_translation_enabled"):
        messages.request_from_pb(asked(glossary_config=contextual), 0.0)
    assert messages.request_from_pb(asked(transliteration_config={}), 0.0).texts


def test_a_glossary_needs_a_name() -> None:
    with pytest.raises(InvalidRequest) as raised:
        messages.request_from_pb(asked(glossary_config={"ignore_case": True}), 0.0)
    assert raised.value.field == "glossary_config.glossary"


@pytest.mark.parametrize("label", ["a", "ab-1_", "x" * 63, "äß", "дक中9"])
def test_good_labels_are_kept(label: str) -> None:
    labels = {"a" + label[1:]: label, "b": "", "c": "1" + label[1:]}
    assert dict(messages.labels_from_pb(labels)) == labels


@pytest.mark.parametrize("wrong", ["aA", "a b", "a.", "Ä", "a\n", "a" * 64, "中" * 64])
def test_bad_labels_are_refused(wrong: str) -> None:
    for labels, field in (({wrong: "a"}, "labels"), ({"a": wrong}, "labels[a]")):
        with pytest.raises(InvalidRequest, match=r"^labels") as raised:
            messages.labels_from_pb(labels)
        assert raised.value.field == field
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("key", ["", "1a", "_a", "-a", "²", "A"])
def test_a_key_begins_with_a_letter(key: str) -> None:
    with pytest.raises(InvalidRequest, match="key"):
        messages.labels_from_pb({key: ""})


def test_finish_reasons_that_are_not_stop_are_told() -> None:
    stop, length, ratio = FinishReason.STOP, FinishReason.LENGTH, FinishReason.RATIO
    plain, glossary = (stop, length, stop, length), (ratio, stop, stop, stop)
    answers = [[translation("", reason) for reason in reasons] for reasons in (plain, glossary)]
    assert messages.finish_reasons(answers[0]) == "length=1,3"
    assert messages.finish_reasons(*answers) == "ratio=0;length=1,3"
    assert messages.finish_reasons([translation("a"), translation("b")]) == ""


@pytest.mark.parametrize("reasons", [[FinishReason.REPETITION], [FinishReason.REPETITION, FinishReason.DEADLINE]])
def test_finish_reasons_fit_into_trailers(reasons: list[FinishReason]) -> None:
    answer = [translation("", reason) for reason, _ in zip(itertools.cycle(reasons), range(1024), strict=False)]
    assert 1024 < len(messages.finish_reasons(answer)) < 4200  # of 8 KiB


HUGE = f"{PARENT}/models/huge"
V3, V2 = messages.FIELDS, v2.FIELDS


@pytest.mark.parametrize(
    ("fields", "error", "kind", "said", "about"),
    [
        (V3, TooLong("{path} is long", Path("texts", 3)), TooLong, "contents[3] is long.", "contents[3]"),
        (V3, InvalidRequest("texts are odd here.", ""), InvalidRequest, "texts are odd here.", ""),
        (V3, InvalidRequest("{path}", Path("glossary")), InvalidRequest, "", "glossary_config.glossary"),
        (V3, PairNotFound("not.", "target_language_code"), InvalidRequest, "not.", "target_language_code"),
        (V3, NotFound("no model 'huge'.", "model", "huge"), NotFound, "no model 'huge'.", HUGE),
        (V3, Overloaded("full", 1.0), Overloaded, "full", ""),
        (V2, TooLong("{path} is long", Path("texts", 2)), TooLong, "q[2] is long.", "q[2]"),
        (V2, InvalidRequest("{path} is wrong", Path("source_language_code")), InvalidRequest, "source is", "source"),
        (V2, PairNotFound("{path} is no", Path("target_language_code")), InvalidRequest, "target is no.", "target"),
        (V2, InvalidRequest("{path} is wrong", Path("model")), InvalidRequest, "model is wrong.", "model"),
        (V2, NotFound("no", "model", "huge"), NotFound, "no", HUGE),
        (V2, InvalidRequest("no", advice="give source_language_code"), InvalidRequest, "no; give source.", ""),
    ],
)
def test_errors_are_in_googles_words(fields: Any, error: ServiceError, kind: Any, said: str, about: str) -> None:
    with pytest.raises(ServiceError) as raised, messages.in_googles_words(fields, HUGE):
        raise error
    assert type(raised.value) is kind
    assert str(raised.value).startswith(said)
    assert about == (raised.value.resource_name if isinstance(raised.value, NotFound) else raised.value.field)


@pytest.mark.parametrize("size", [0, 1, 3, 7, 10, 5000])
@pytest.mark.parametrize("number", [0, 1, 7, 2500])
def test_pages_put_together_are_everything(number: int, size: int) -> None:
    items, token = list(range(number)), ""
    pages = []
    for _ in itertools.count():
        found, token = messages.page(items, size, token)
        pages.append(list(found))
        if not token:
            break
    assert [each for found in pages for each in found] == items
    assert all(len(found) == min(size or 1000, 1000) for found in pages[:-1])
    assert all(pages) or pages == [[]]


@pytest.mark.parametrize("token", ["x", "-1", "1.5", " 1", "²", "9" * 30])
def test_a_token_that_no_page_gave(token: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^page_token is"):
        messages.page([1, 2], 1, token)
    with pytest.raises(InvalidRequest, match=r"^page_size is -1"):
        messages.page([1, 2], -1, "")


def test_a_page_past_the_end_is_empty() -> None:  # the glossary has become shorter
    assert messages.page([1, 2], 1, "7") == ([], "")


GLOSSARIES = [Glossary("a", "en", "de", ()), Glossary("b", "en", "pt-BR", ()), Glossary("c", "de", "en", ())]


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        ("", "abc"),
        ("src=en", "ab"),
        ("tgt=pt-br", "b"),
        ("src=en AND tgt=de", "a"),
        ("tgt=de AND src=en", "a"),
        ("src=fr", ""),
    ],
)
def test_glossaries_by_language(conditions: str, names: str) -> None:
    assert "".join(glossary.name for glossary in messages.filtered(GLOSSARIES, conditions)) == names


@pytest.mark.parametrize("conditions", ["en", "src=", "src=en tgt=de", "src=en and tgt=de", "name=a", "src=en AND "])
def test_other_filters_are_refused(conditions: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^filter is"):
        messages.filtered(GLOSSARIES, conditions)


def test_a_glossary_is_called_as_its_file() -> None:
    assert [messages.glossary_id(glossary) for glossary in GLOSSARIES] == ["a.en-de", "b.en-pt_BR", "c.de-en"]


def test_the_languages_of_a_call_pick_the_glossary() -> None:
    def picked(source: str, target: str) -> str:
        message = asked(source_language_code=source, target_language_code=target)
        return messages.fitting(GLOSSARIES, messages.request_from_pb(message, 0.0)).name

    assert [picked("en", "de"), picked("en-US", "pt"), picked("DE", "en_GB")] == ["a", "b", "c"]
    with pytest.raises(
        InvalidRequest, match=r"a\.en-de, b\.en-pt_BR, c\.de-en; the call is from 'en' into 'fr'"
    ) as raised:
        picked("en", "fr")
    assert raised.value.field == "glossary"
    with pytest.raises(InvalidRequest, match="source_language_code is empty") as raised:
        picked("", "de")
    assert raised.value.field == "source_language_code"


def test_a_glossary_and_its_entries() -> None:
    glossary = Glossary("terms", "en", "de", (Term("file", "Datei"), Term("Dragoman")))
    found = messages.glossary_to_pb(glossary, PARENT)
    assert (found.name, found.display_name, found.entry_count) == (f"{GLOSSARY}.en-de", "terms", 2)
    pair = found.language_pair
    assert (pair.source_language_code, pair.target_language_code) == ("en", "de")
    first, second = (messages.entry_to_pb(glossary, GLOSSARY, number) for number in (1, 2))
    assert (first.name, second.name) == (f"{GLOSSARY}/glossaryEntries/1", f"{GLOSSARY}/glossaryEntries/2")
    assert (first.terms_pair.source_term.text, first.terms_pair.target_term.text) == ("file", "Datei")
    assert (first.terms_pair.source_term.language_code, first.terms_pair.target_term.language_code) == ("en", "de")
    assert (second.terms_pair.source_term.text, second.terms_pair.target_term.text) == ("Dragoman", "Dragoman")


PARENTS = ["projects/p", "projects/1-a/locations/europe-west1", "projects/-/locations/-"]
NO_PARENTS = [
    *("", "p", "projects/", "projects/p/", "projects/p/locations/", "locations/l"),
    *("projects/p/locations/l/m", "/projects/p"),
]


@pytest.mark.parametrize("parent", PARENTS)
def test_any_project_and_location_will_do(parent: str) -> None:
    names.check_parent(parent)
    assert names.model_of(f"{parent}/models/en-de") == "en-de"
    assert names.model_of(f"{parent}/models/general/nmt") == ""
    assert names.model_of(f"{parent}/models/general/base") == "general/base"
    assert names.detection_model_of(f"{parent}/models/language-detection/default") == names.DETECTION_MODEL


@pytest.mark.parametrize("parent", NO_PARENTS)
def test_what_is_no_parent_is_refused(parent: str) -> None:
    with pytest.raises(InvalidRequest, match=r"projects/\{project\}/locations/\{location\}\.$") as raised:
        names.check_parent(parent)
    assert raised.value.field == "parent"
    with pytest.raises(InvalidRequest) as raised:
        names.model_of(f"{parent}/models/en-de")
    assert raised.value.field == "model"


def test_no_model_is_the_default_one() -> None:
    assert names.model_of("") == ""
    assert names.detection_model_of("") == names.DETECTION_MODEL


def test_names_of_a_glossary_and_of_its_entries() -> None:
    for parent in PARENTS[1:]:
        full = names.glossary_name(parent, "terms")
        assert full == f"{parent}/glossaries/terms"
        assert names.glossary_of(full, "name") == "terms"
        assert names.parent_of(full) == parent
        assert names.entry_of(names.entry_name(full, 7)) == (full, "7")
    assert names.glossary_name("projects/p", "terms") == "projects/p/locations/global/glossaries/terms"


@pytest.mark.parametrize("name", ["", "terms", "projects/p/glossaries/terms", "projects/p/locations/l/glossaries/a/b"])
def test_what_is_no_glossary_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"glossaries/\{glossary\}") as raised:
        names.glossary_of(name, "glossary_config.glossary")
    assert raised.value.field == "glossary_config.glossary"
    with pytest.raises(InvalidRequest, match=r"glossaryEntries/\{entry\}"):
        names.entry_of(f"{name}/glossaryEntries/")
    with pytest.raises(InvalidRequest, match=r"glossaryEntries/\{entry\}"):
        names.entry_of(name)


def test_messages_stay_one_short_line() -> None:
    with pytest.raises(InvalidRequest) as raised:
        names.check_parent("projects/\n" + "x" * 1000 + "/")
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)
