"""Which model answers."""

import dataclasses
from pathlib import Path
from typing import Any, cast

import pytest

from service.bundle.manifest import LanguagePair, Manifest
from service.engine.engine import Engine
from service.errors import InvalidRequest, NotFound
from service.models.catalogue import Catalogue
from service.models.language_pairs import LanguagePairs
from service.models.loaded_model import LoadedModel
from service.text.tokenizers import Tokenizer


@pytest.fixture
def model(tiny_bundle: Path) -> Any:
    manifest = Manifest.load(tiny_bundle)

    def make(name: str, *pairs: str) -> Any:
        languages = tuple(LanguagePair(pair[:2], pair[3:]) for pair in pairs)
        described = dataclasses.replace(manifest, name=name, languages=languages)
        return LoadedModel(
            Path(),
            "1",
            described,
            tokenizer=cast(Tokenizer, None),
            engine=cast(Engine, None),
            pairs=LanguagePairs(described),
        )

    return make


def test_the_pair_alone_takes_the_first_model_by_name(model: Any) -> None:
    catalogue = Catalogue([model("b", "en>de", "en>fr"), model("a", "en>de")])
    assert [each.name for each in catalogue.models()] == ["a", "b"]
    assert catalogue.resolve("", "EN", "de")[0].name == "a"
    found, pair = catalogue.resolve("", "en", "FR")
    assert (found.name, pair) == ("b", LanguagePair("en", "fr"))


def test_a_name_takes_that_model(model: Any) -> None:
    catalogue = Catalogue([model("a", "en>de"), model("b", "en>de")])
    assert catalogue.resolve("b", "en", "de")[0].name == "b"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("c", "en", "de"), r"model 'c' is not served here; served are a, b\."),
        (("a", "en", "fr"), r"model 'a' does not translate from 'en' into 'fr'; from 'en' it can be de\."),
        (("", "en", "nl"), r"no model here translates from 'en' into 'nl'; from 'en' it can be de, fr\."),
        (("", "nl", "en"), r"no model here translates from 'nl' into 'en'; served are en to de, en to fr\."),
    ],
)
def test_what_is_not_served_is_named_with_what_is(model: Any, asked: Any, message: str) -> None:
    catalogue = Catalogue([model("a", "en>de"), model("b", "en>de", "en>fr")])
    with pytest.raises(NotFound, match=message):
        catalogue.resolve(*asked)


@pytest.mark.parametrize(
    ("source", "target", "field"), [("", "de", "source"), ("en", "", "target"), ("en", "?", "target")]
)
def test_codes_must_be_codes(model: Any, source: str, target: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Catalogue([model("a", "en>de")]).resolve("", source, target)
    assert raised.value.field == f"{field}_language_code"


def test_long_lists_and_names_are_cut(model: Any) -> None:
    catalogue = Catalogue([model(f"model-{number:02}", "en>de") for number in range(30)])
    with pytest.raises(NotFound) as raised:
        catalogue.resolve("x" * 1000, "en", "de")
    assert "and 10 more" in str(raised.value)
    assert len(str(raised.value)) < 500
