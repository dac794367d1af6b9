"""A bundle says that its texts are no prose: then they go to the tokenizer as they are, and so do its answers."""

import asyncio
import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import InvalidRequest, TooLong
from service.domain.options import RequestedOptions
from service.domain.translation import Term, TranslationRequest, TranslationResult
from tests.patience import patient
from tests.unit.translation.letters import SYMBOLS, LetterTokenizer, letters_manifest
from tests.unit.translation.scripted_engine import model_of, translator_of
from tests.unit.translation.test_numbers import LIMITS, WritingEngine

ATOMS = ["C", "c", "N", "O", "Cl", "Br", "[C@@H]", "[nH]", "[O-]", "%12", "=", "#", "(", ")", "/", "\\", "1", "2", "."]
HARD = [" ", "1", " C\u00a0C ", "C\n\tC", "CC\u00adC", "{0}", "%s</b>", "C" * 60, "()", "2024-01-02. A.B! C"]


def smiles(seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(ATOMS, k=chance.randrange(1, 40))) for _ in range(100)]


class Served:
    """A model of letters that writes for each text the one that the test says."""

    def __init__(self, tiny_bundle: Path, *, is_prose: bool, answers: dict[str, str] | None = None) -> None:
        self.engine = WritingEngine(lambda text: (answers or {}).get(text, text), num_allowed=10_000)
        manifest = dataclasses.replace(
            letters_manifest(tiny_bundle, symbols=SYMBOLS, max_source_tokens=300), is_prose=is_prose
        )
        self.model = model_of(manifest, LetterTokenizer(), self.engine)
        self.translator = self.engine.translator = translator_of([self.model], LIMITS)

    def translate(self, texts: Sequence[str], source: str = "en", **asked: Any) -> TranslationResult:
        request = TranslationRequest(tuple(texts), source, "de", **asked)
        return asyncio.run(asyncio.wait_for(self.translator.translate(request), patient(20)))


@pytest.mark.parametrize("asked", [{}, {"source": ""}, {"preserve_formatting": True}])
def test_texts_and_answers_stay_as_they_are(tiny_bundle: Path, asked: dict[str, Any]) -> None:
    texts = [*smiles(1), *HARD]
    answers = dict(zip(texts, [*smiles(2), *reversed(HARD)], strict=True))
    served = Served(tiny_bundle, is_prose=False, answers=answers)
    result = served.translate(texts, **asked)
    assert [each.text for each in result.translations] == [answers[text] for text in texts]
    assert served.engine.read == texts
    assert not [segment.flags for each in result.translations for segment in each.segments if segment.flags]
    control = Served(tiny_bundle, is_prose=True, answers=answers).translate(texts)
    changed = [text for text, each in zip(texts, control.translations, strict=True) if each.text != answers[text]]
    assert len(changed) > 50, "the control: prose is cut, searched and mended"


def test_guards_of_decoding_are_off_unless_the_bundle_says_so(tiny_bundle: Path) -> None:
    options = [Served(tiny_bundle, is_prose=each).model.options(RequestedOptions()) for each in (False, True)]
    assert [(each.max_repeats, each.max_length_ratio) for each in options] == [(0, 0.0), (10, 3.0)]


@pytest.mark.parametrize(
    ("texts", "asked", "problem", "kind"),
    [
        (["C" * 1000], {}, "texts[0] has a segment of 1002 tokens", TooLong),
        (["C" * 4801], {}, "texts[0] has a segment of 4801 characters", TooLong),
        (["CO"], {"terms": (Term("C", "D"),)}, "terms can't be used with tiny, whose texts are", InvalidRequest),
    ],
)
def test_what_such_a_model_refuses(
    tiny_bundle: Path, texts: list[str], asked: Any, problem: str, kind: type[InvalidRequest]
) -> None:
    with pytest.raises(kind) as refused:
        Served(tiny_bundle, is_prose=False).translate(texts, **asked)
    assert problem in str(refused.value)


def test_a_prefix_of_the_caller_begins_the_answer(tiny_bundle: Path) -> None:
    served = Served(tiny_bundle, is_prose=False)
    served.translate(["C1. CO"], target_prefixes=("C1.",))
    assert served.engine.read == ["C1. CO"]
