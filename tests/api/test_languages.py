"""Language codes and language detection as a caller sees them."""

from collections.abc import Iterator

import pytest

from dragoman_client import Client, Flag
from tests.servers import Serve
from tests.tiny_bundle import write_tiny_bundle

ENGLISH, FRENCH, HINDI = "Where is the train station?", "Où se trouve la gare ?", "स्टेशन कहाँ है?"


@pytest.fixture(scope="module")
def client(share: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    models = tmp_path_factory.mktemp("models")
    write_tiny_bundle(models / "many" / "1", "many", seed=9, among="eng_Latn fra_Latn hin_Deva zho_Hant")
    write_tiny_bundle(models / "italian" / "1", "italian", "en", "it", seed=3)
    with share(models=models, max_slots=4, pivot_language=("none",)).client() as client:
        yield client


def test_models_are_listed_with_canonical_codes_which_lead_back_to_them(client: Client) -> None:
    italian, many = client.models()
    assert italian.language_pairs == (("en", "it"),)
    assert many.any_to_any_language_codes == ("en", "fr", "hi", "zh-Hant")
    for model in (italian, many):
        for source, target in model.pairs():
            assert client.translate([ENGLISH], source, target)[0].text


def test_each_text_is_translated_from_its_own_language(client: Client) -> None:
    texts = [ENGLISH, "42", HINDI, "", FRENCH, ENGLISH]
    translations = client.translate(texts, "", "zh-TW")
    assert [each.detected_language_code for each in translations] == ["en", "und", "hi", "und", "fr", "en"]
    for text, translation in zip(texts, translations, strict=True):
        if translation.detected_language_code == "und":
            assert (translation.text, translation.num_source_tokens) == (text, 0)
        else:
            (expected,) = client.translate([text], translation.detected_language_code, "zh-TW")
            assert expected.detected_language_code == ""
            assert (translation.text, translation.hypotheses) == (expected.text, expected.hypotheses)


def test_with_a_target_that_is_translated_itself_texts_are_not_kept(
    share: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = tmp_path_factory.mktemp("models")
    write_tiny_bundle(models / "corrects" / "1", "corrects", "en", "en", seed=5)
    write_tiny_bundle(models / "american" / "1", "american", "en-US", "en-GB", seed=6)
    with share(models=models, max_slots=4).client() as client:
        for source, target in (("", "en"), ("en", "en"), ("", "en-GB"), ("en-US", "en-GB")):
            (translation,) = client.translate([ENGLISH], source, target)
            assert translation.num_source_tokens > 0
            assert Flag.TARGET_LANGUAGE not in translation.segments[0].flags
        (kept,) = client.translate([ENGLISH], "en-GB", "en-GB", model="corrects")
        assert kept.num_source_tokens > 0  # the nearest pair of the named model


def test_detection_knows_more_languages_than_are_served(client: Client) -> None:
    texts = [ENGLISH, "Wo ist hier der Bahnhof?", "123", HINDI, "Hi"]
    english, german, number, hindi, short = client.detect(texts)
    assert [each[0].language_code for each in (english, german, number, hindi)] == ["en", "de", "und", "hi"]
    assert number[0].confidence == 0.0
    assert english[0].confidence > 0.9 > short[0].confidence
    assert [each.confidence for each in hindi] == sorted((each.confidence for each in hindi), reverse=True)


def test_the_largest_detection_is_answered(client: Client) -> None:
    assert len(client.detect(["Hi, how?"] * 1024)) == 1024
