"""Which model answers."""

import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any, cast

import pytest

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Language, LanguagePair
from service.domain.errors import Forbidden, InvalidRequest, NotFound
from service.domain.grants import EVERYTHING, Grants
from service.engine.engine import Engine
from service.models.catalogue import Catalogue
from service.models.language_pairs import LanguagePairs
from service.models.loaded_model import LoadedModel
from service.models.repository import FoundBundle
from service.text.tokenizers import Tokenizer


@pytest.fixture
def model(tiny_bundle: Path) -> Any:
    manifest = Manifest.load(tiny_bundle)

    def make(name: str, *pairs: str, version: str = "1", among: tuple[str, ...] = ()) -> Any:
        languages = tuple(LanguagePair(pair[:2], pair[3:]) for pair in pairs)
        described = dataclasses.replace(
            manifest, name=name, languages=languages, any_to_any=tuple(Language(code) for code in among)
        )
        return LoadedModel(
            FoundBundle(Path(), version, described, frozenset()),
            tokenizer=cast(Tokenizer, None),
            engine=cast(Engine, None),
            pairs=LanguagePairs(described),
        )

    return make


def test_the_pair_alone_takes_the_first_model_by_name(model: Any) -> None:
    catalogue = Catalogue([model("b", "en>de", "en>fr"), model("a", "en>de")])
    assert [each.name for each in catalogue.models] == ["a", "b"]
    assert catalogue.resolve("", "", "EN", "de").writer.name == "a"
    [(found, pair)] = catalogue.resolve("", "", "en", "FR").legs
    assert (found.name, pair) == ("b", LanguagePair("en", "fr"))


def test_a_name_takes_that_model(model: Any) -> None:
    catalogue = Catalogue([model("a", "en>de"), model("b", "en>de")])
    assert catalogue.resolve("b", "", "en", "de").writer.name == "b"


def test_one_model_translates_many_pairs(model: Any) -> None:
    catalogue = Catalogue([model("b", "en>de"), model("many", "en>de", among=("fr", "it", "es", "de"))])
    for source, target in itertools.permutations(("fr", "it", "es", "de"), 2):
        assert catalogue.resolve("", "", source, target).writer.name == "many"
    assert catalogue.resolve("", "", "en", "de").writer.name == "b"
    assert catalogue.resolve("many", "", "en", "de").writer.name == "many"
    with pytest.raises(NotFound, match=r"targets from 'en': de\."):
        catalogue.resolve("", "", "en", "fr")


def test_the_highest_version_answers_unless_another_is_named(model: Any) -> None:
    versions = [model("a", "en>de", version=version) for version in ("9", "10", "2")]
    catalogue = Catalogue([*versions, model("b", "en>de", version="11")])
    assert [(each.name, each.version) for each in catalogue.models] == [
        ("a", "10"), ("a", "9"), ("a", "2"), ("b", "11"),
    ]  # fmt: skip
    assert catalogue.resolve("", "", "en", "de").writer.version == "10"
    assert catalogue.resolve("a", "", "en", "de").writer.version == "10"
    assert catalogue.resolve("a", "2", "en", "de").writer.version == "2"


def test_a_pair_that_only_an_old_version_knows_takes_that_version_by_name(model: Any) -> None:
    catalogue = Catalogue([model("a", "en>de", "en>fr", version="1"), model("a", "en>de", version="2")])
    for name in ("", "a"):
        with pytest.raises(NotFound):
            catalogue.resolve(name, "", "en", "fr")
    assert catalogue.resolve("a", "1", "en", "fr").writer.version == "1"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("a", "3"), r"version '3' of model 'a' is not served here; served: 2, 1\."),
        (("a", "02"), r"version '02' of model 'a' is not served here; served: 2, 1\."),
        (("a", "x" * 999), r"version 'xx.*\.\.\.' of model 'a' is not served"),
        (("bare", "1"), r"model 'bare' has no versions here, and '1' was asked for; leave it out\."),
    ],
)
def test_a_version_that_is_not_served_is_named_with_those_that_are(model: Any, asked: Any, message: str) -> None:
    served = [model("a", "en>de"), model("a", "en>de", version="2"), model("bare", "en>de", version="")]
    with pytest.raises(NotFound, match=message):
        Catalogue(served).resolve(asked[0], asked[1], "en", "de")


def test_a_version_alone_names_nothing(model: Any) -> None:
    with pytest.raises(InvalidRequest, match="model_version is '1' and model is empty") as raised:
        Catalogue([model("a", "en>de")]).resolve("", "1", "en", "de")
    assert raised.value.field == "model_version"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("c", "", "en", "de"), r"model 'c' is not served here; served: a, b\."),
        (("a", "", "en", "fr"), r"model 'a' does not translate from 'en' into 'fr'; targets from 'en': de\."),
        (("", "", "en", "nl"), r"no model here translates from 'en' into 'nl'; targets from 'en': de, fr\."),
        (("", "", "nl", "en"), r"no model here translates from 'nl' into 'en'; served: en to de, en to fr\."),
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
        Catalogue([model("a", "en>de")]).resolve("", "", source, target)
    assert raised.value.field == f"{field}_language_code"


def test_long_lists_and_names_are_cut(model: Any) -> None:
    catalogue = Catalogue([model(f"model-{number:02}", "en>de") for number in range(30)])
    with pytest.raises(NotFound) as raised:
        catalogue.resolve("x" * 1000, "", "en", "de")
    assert "and 10 more" in str(raised.value)
    assert len(str(raised.value)) < 500


def test_the_model_with_the_nearest_codes_answers(model: Any) -> None:
    catalogue = Catalogue([model("a", "en>pt"), model("b", "en>pt-PT"), model("c", "en>pt_br", "fr>pt-BR")])
    for target, name in [("pt", "a"), ("pt-PT", "b"), ("pt-AO", "b"), ("pt-BR", "c"), ("por", "a")]:
        assert catalogue.resolve("", "", "en", target).writer.name == name
    [(found, pair)] = catalogue.resolve("", "", "fr", "pt").legs  # the nearest code alone would lead nowhere
    assert (found.name, pair.target_language_code) == ("c", "pt-BR")


def test_a_language_is_not_translated_into_itself(model: Any) -> None:
    catalogue = Catalogue([model("a", "fr>it", among=("en", "de", "zh"))])
    for source, target in [("en", "en"), ("en-GB", "en-US"), ("de", "deu"), ("zh-CN", "cmn_Hans"), ("fr", "FR")]:
        route = catalogue.resolve("", "", source, target)
        assert (route.legs, route.writer.name) == ((), "a")
        assert catalogue.resolve("a", "", source, target) == route
    for source, target in [("es", "es"), ("zh", "zh-Hant"), ("zh-Hant", "zh-TW"), ("sr", "sr-Latn")]:
        with pytest.raises(NotFound):
            catalogue.resolve("", "", source, target)


def test_a_model_may_translate_a_language_into_itself(model: Any) -> None:
    catalogue = Catalogue([model("a", among=("en", "de")), model("corrects", "en>en", "en-US>en-GB")])
    for source, target in [("en", "en"), ("en-US", "en-GB"), ("en-AU", "en")]:
        assert [leg.model.name for leg in catalogue.resolve("", "", source, target).legs] == ["corrects"]
    assert catalogue.resolve("a", "", "en", "en").legs == ()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("sr-Latn", "en"), r"from 'sr-Latn' into 'en'; the nearest code is 'sr'; served: among en, sr, zh\."),
        (("en", "zh-TW"), r"from 'en' into 'zh-TW'; the nearest code is 'zh'; targets from 'en': sr, zh\."),
        (("fr", "en"), r"from 'fr' into 'en'; served: among en, sr, zh\."),
    ],
)
def test_who_asks_for_a_language_in_vain_is_pointed_to_a_near_one(model: Any, asked: Any, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        Catalogue([model("a", among=("eng_Latn", "srp_Cyrl", "zho_Hans"))]).resolve("", "", *asked)


def test_what_a_language_can_be_translated_from(model: Any) -> None:
    catalogue = Catalogue([model("a", "en>de", "fr>deu"), model("many", among=("eng_Latn", "zho_Hant", "deu_Latn"))])
    assert catalogue.sources("", "", "DE") == ["en", "fr", "zh-Hant"]
    assert catalogue.sources("a", "", "de-AT") == ["en", "fr"]
    assert catalogue.sources("many", "", "en") == ["de", "zh-Hant"]
    with pytest.raises(NotFound, match=r"model 'a' does not translate into 'en'; served: en to de, fr to de"):
        catalogue.sources("a", "", "en")
    with pytest.raises(InvalidRequest, match="target_language_code"):
        catalogue.sources("", "", "?")


def test_two_models_translate_a_pair_that_none_has(model: Any) -> None:
    models = [model("a", "de>en"), model("b", "en>fr", "en>hi"), model("c", "de>es", "es>hi", "es>it")]
    catalogue = Catalogue(models, ["en", "spa"])
    for asked, names, pivot in [
        (("", "de", "fr"), ["a", "b"], "en"),
        (("", "DE-at", "hin"), ["a", "b"], "en"),  # English comes first
        (("", "de", "it"), ["c", "c"], "es"),
        (("c", "de", "hi"), ["c", "c"], "es"),  # a named model by itself
        (("", "de", "es"), ["c"], ""),
    ]:
        route = catalogue.resolve(asked[0], "", *asked[1:])
        assert ([leg.model.name for leg in route.legs], route.pivot_language_code) == (names, pivot)
        assert route.writer is route.legs[-1].model
    for asked in [("a", "de", "fr"), ("", "fr", "hi"), ("", "it", "de")]:
        with pytest.raises(NotFound):
            catalogue.resolve(asked[0], "", *asked[1:])
    assert [(*pair[:3], pair.writer.name) for pair in catalogue.pivoted()] == [
        ("de", "fr", "en", "b"), ("de", "hi", "en", "b"), ("de", "it", "es", "c"),
    ]  # fmt: skip
    assert catalogue.targets()["de"] == {"en", "es", "fr", "hi", "it"}
    assert [catalogue.sources("", "", target) for target in ("hi", "it")] == [["de", "en", "es"], ["de", "es"]]
    without = Catalogue(models)
    assert (without.pivoted(), without.sources("", "", "hi")) == ([], ["en", "es"])
    with pytest.raises(NotFound, match="targets from 'de': en, es"):
        without.resolve("", "", "de", "fr")


def test_a_language_does_not_become_itself_by_way_of_another(model: Any) -> None:
    catalogue = Catalogue([model("a", "pt>en", "zh>en"), model("b", "en>pt-PT", "en>zh-Hant")], ["en"])
    with pytest.raises(NotFound):
        catalogue.resolve("", "", "zh", "zh-Hant")
    assert [pair[:2] for pair in catalogue.pivoted()] == [("pt", "zh-Hant"), ("zh", "pt-PT")]
    assert catalogue.sources("", "", "pt-PT") == ["en", "zh"]


def test_a_near_code_is_better_than_another_model(model: Any) -> None:
    catalogue = Catalogue([model("a", "is>en"), model("b", "en>pt-BR"), model("c", "is>pt")], ["en"])
    assert [leg.model.name for leg in catalogue.resolve("", "", "is", "pt-BR").legs] == ["c"]
    assert catalogue.pivoted() == []


def test_two_hundred_languages_are_found_at_once(model: Any) -> None:
    codes = tuple(f"{first}{second}{third}_Latn" for first in "bcdfg" for second in "aeiou" for third in "klmnprst")
    pairs = model("a", among=codes).pairs
    assert len(pairs.any_to_any) == len(set(pairs.any_to_any)) == 200
    started = time.thread_time()
    for source, target in itertools.islice(itertools.permutations(codes, 2), 2000):
        found = pairs.find(source, target)
        assert (found.pair.source_language_code, found.distance) == (source, 0)
        assert found.pair == Language(source).to(Language(target))
    assert time.thread_time() - started < 2.0  # of CPU; 0.02 s here; listing 40,000 pairs for each would take minutes


def test_a_key_sees_only_the_models_that_it_may_use(model: Any) -> None:
    every = [model("a", "en>de"), model("b", "fr>en", "en>fr"), model("c", "en>hi")]
    catalogue = Catalogue(every, ["en"])
    assert catalogue.part(EVERYTHING) is catalogue
    assert catalogue.part(Grants("glossaries_only", None, frozenset("x"))) is catalogue
    shop = Grants("shop", frozenset({"a", "b", "gone"}))
    part = catalogue.part(shop)
    assert catalogue.part(Grants("shop", frozenset({"a", "b", "gone"}))) is part
    assert [each.name for each in part.models] == ["a", "b"]
    assert part.targets() == {"en": {"de", "fr"}, "fr": {"en", "de"}}, "no way through a model that it may not use"
    assert part.resolve("", "", "fr", "de").pivot_language_code == "en"
    with pytest.raises(NotFound, match=r"^no model for key shop translates from 'en' into 'hi'; .*targets from 'en':"):
        part.resolve("", "", "en", "hi")
    with pytest.raises(NotFound, match=r"^no model for key shop translates into 'hi'; "):
        part.sources("", "", "hi")
    for name in ("c", "typo"):  # whether it is there or not
        with pytest.raises(Forbidden, match=rf"^key shop may not use model '{name}'; it may use a, b, gone\.$"):
            part.resolve(name, "", "en", "hi")
    with pytest.raises(NotFound, match=r"^model 'gone' is not served here; served: a, b\.$"):
        part.find("gone", "")
    alone = catalogue.part(Grants("other", frozenset({"c"})))
    with pytest.raises(NotFound):
        alone.resolve("", "", "fr", "hi")
    assert catalogue.resolve("", "", "fr", "hi").pivot_language_code == "en"
