"""Which pair a model's name means."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from service.bundle.manifest_parts import Language, LanguagePair
from service.domain.errors import NotFound
from service.faces.openai.messages import NamedPair, names_of, pair_of
from service.models.catalogue import Catalogue
from service.models.language_pairs import LanguagePairs


def model(name: str, pairs: Sequence[tuple[str, str]] = (), among: Sequence[str] = ()) -> Any:
    languages = tuple(LanguagePair(source, target, (), ()) for source, target in pairs)
    manifest = SimpleNamespace(
        languages=languages,
        any_to_any=tuple(Language(code, (), ()) for code in among),
        limits=SimpleNamespace(max_output_tokens=99),
    )
    return SimpleNamespace(name=name, version="1", manifest=manifest, pairs=LanguagePairs(manifest))  # type: ignore[arg-type]


MODELS = [
    model("many", among=["eng_Latn", "deu_Latn", "zho_Hant", "por_Latn"]),
    model("opus", [("en", "de"), ("en", "pt-BR")]),
    model("more", [("en", "de"), ("sr-Latn", "hr")]),
    model("is", [("is", "en")]),
]
CATALOGUE = Catalogue(MODELS, ["en"])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("en-de", ("", "en", "de")),
        ("dragoman/en-de", ("", "en", "de")),
        ("EN-de", ("", "EN", "de")),
        ("en_US-de_AT", ("", "en_US", "de_AT")),
        ("eng_Latn-deu_Latn", ("", "eng_Latn", "deu_Latn")),
        ("more:en-de", ("more", "en", "de")),
        ("dragoman/many:eng_Latn-zho_Hant", ("many", "eng_Latn", "zho_Hant")),
        ("zh-Hant-pt-BR", ("", "zh-Hant", "pt-BR")),
        ("sr-Latn-hr", ("", "sr-Latn", "hr")),
        ("auto-de", ("", "", "de")),
        ("opus:auto-pt-BR", ("opus", "", "pt-BR")),
        ("is-de", ("", "is", "de")),  # by way of English
    ],
)
def test_a_name_means_a_pair(given: str, found: tuple[str, str, str]) -> None:
    assert pair_of(given, CATALOGUE) == NamedPair(*found, max_output_tokens=99)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "gpt-4o",
        "en",
        "de-",
        "-de",
        "en-de-",
        "opus:de-en",
        "none:en-de",
        "auto-auto",
        "back:is-de",
        "a-" * 500,
        "ja-ja",
    ],
)
def test_another_is_no_model(given: str) -> None:
    with pytest.raises(NotFound, match="GET /v1/models lists pairs, such as "):
        pair_of(given, CATALOGUE)


def test_each_pair_has_one_name_that_means_it() -> None:
    names = list(names_of(CATALOGUE))
    assert names[:3] == ["is-en", "en-de", "en-zh-Hant"]
    assert names[13:17] == ["more:en-de", "sr-Latn-hr", "opus:en-de", "en-pt-BR"]
    assert names[17:] == ["is-de", "is-pt", "is-pt-BR", "is-zh-Hant"]
    assert len(set(names)) == len(names)
    for name in names:
        pair = pair_of(name, CATALOGUE)
        assert name.endswith(f"{pair.source}-{pair.target}")


def test_of_very_many_pairs_the_targets_are_listed() -> None:
    codes = [f"{first}{second}" for first in "abcdef" for second in "aeiouy"]
    catalogue = Catalogue([model("all", among=codes)])
    names = list(names_of(catalogue))
    assert len(names) == len(codes)
    assert all(pair_of(name, catalogue).source == "" for name in names)
