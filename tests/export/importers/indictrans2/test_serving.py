"""Bundles of IndicTrans2 serve each language in its own script, with all that the service does for texts."""

import unicodedata
from pathlib import Path

import pytest

from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer, of_pair
from tests.http_caller import call, events
from tests.servers import InProcessServer, Serve

TEXTS = {
    "en": "Where is the train station? Prices rose by 3.5 % in 2021.",
    "hi": "रेलवे स्टेशन कहाँ है? खिड़की बंद करने से पहले फ़ाइल सहेजें।",
    "ta": "வணக்கம், எப்படி இருக்கிறீர்கள்? நான் தமிழ் பேசுகிறேன்.",
    "ur": "میں اردو بولتا ہوں۔ آپ کیسے ہیں؟",
}
SCRIPTS = {"en": "LATIN", "hi": "DEVANAGARI", "ta": "TAMIL", "bn": "BENGALI"}
PAIRS = [("en", "hi"), ("en", "ta"), ("en", "bn"), ("hi", "en"), ("ur", "en"), ("ta", "hi"), ("hi", "ta"), ("ur", "bn")]


@pytest.fixture(scope="module")
def server(share: Serve, models: Path) -> InProcessServer:
    return share(models=models, num_threads=1, http_port=0)


def asked(text: str, source: str, target: str, **options: object) -> dict[str, object]:
    return {"text": text, "source_language_code": source, "target_language_code": target, **options}


def scripts_of(text: str) -> set[str]:
    """Return the scripts of a text's letters; of India's without Olck and Meetei Mayek, which outputs keep."""
    found = {unicodedata.name(letter).split()[0] for letter in text if letter.isalpha()}
    return found & {"LATIN", "DEVANAGARI", "TAMIL", "BENGALI"}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_translation_is_in_the_script_of_its_language(server: InProcessServer, source: str, target: str) -> None:
    reply = call(server.http_url, "POST", "/v1/translate", asked(TEXTS[source], source, target))
    assert reply.status == 200
    [translation] = reply.document["translations"]
    assert SCRIPTS[target] in scripts_of(translation["text"])
    assert "DEVANAGARI" not in scripts_of(translation["text"]) or target == "hi"


def test_a_stream_is_the_beginning_of_what_is_said_in_the_end(server: InProcessServer) -> None:
    for source, target in PAIRS:
        body = asked(TEXTS[source], source, target, options={"max_output_tokens": 23})
        whole = call(server.http_url, "POST", "/v1/translate", body).document["translations"][0]["text"]
        found = events(call(server.http_url, "POST", "/v1/translate/stream", body).body)
        assert "".join(data["delta"] for name, data in found if not name) == whole


def test_what_must_stay_stays(server: InProcessServer) -> None:
    text = "See https://example.org/a?b=1 and call {name} before you close the window, 🍕."
    with server.client() as client:
        for target in ("hi", "ta"):
            [translation] = client.translate([text], "en", target)
            assert all(part in translation.text for part in ("https://example.org/a?b=1", "{name}", "🍕"))


def test_the_words_of_a_source_and_its_translation_are_aligned(server: InProcessServer) -> None:
    with server.client() as client:
        for source, target in PAIRS:
            [translation] = client.translate([TEXTS[source]], source, target, return_alignments=True)
            assert translation.alignment
            for span in translation.alignment:
                assert 0 <= span.source_start < span.source_end <= len(TEXTS[source])
                assert 0 <= span.target_start < span.target_end <= len(translation.text)


def test_a_translation_may_begin_as_asked(server: InProcessServer) -> None:
    with server.client() as client:
        [translation] = client.translate([TEXTS["en"]], "en", "ta", target_prefixes=["வணக்கம்"])
    assert translation.text.startswith("வணக்கம்")


def test_each_pair_has_one_tokenizer_of_its_own(models: Path) -> None:
    bundle = models / "en-indic" / "1"
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    first, second = (of_pair(tokenizer, pair) for pair in manifest.languages[:2])
    assert first is not second
    assert of_pair(tokenizer, manifest.languages[0]) is first
    assert tokenizer.decode(first.encode_target("আমি গান")) != first.decode(first.encode_target("আমি গান")) == "আমি গান"
