"""Numbers and identifiers survive or are flagged, whatever the model writes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import Overloaded
from service.domain.options import RequestedOptions
from service.domain.translation import AlignedSpan, CallLimits, FinishReason, Flag, TranslationRequest
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceUpdate
from service.text.numbers import Languages
from service.text.protected import Protected
from service.text.spans import Span
from service.translation.number_correction import correct
from service.translation.segments import PlannedSegment
from service.translation.translator import Translator
from tests.patience import patient
from tests.unit.translation.letters import SYMBOLS, LetterTokenizer, letters_manifest
from tests.unit.translation.scripted_engine import model_of, translator_of

GERMAN = Languages("en", "de")
LIMITS = CallLimits(10_000, 1_000, 100_000)
LETTERS = LetterTokenizer()
A, B = SYMBOLS[:2]

Write = Callable[[str], str]


class WritingEngine:
    """Writes for each source what the test says, at once; refuses more than `num_allowed` submissions."""

    can_change_scores = True

    def __init__(self, write: Write, num_allowed: int) -> None:
        self.read: list[str] = []
        self.translator = cast(Translator, None)
        self._write = write
        self._num_allowed = num_allowed
        self._held: list[SequenceUpdate] = []
        self.holds_until: str | None = None  # answers to other texts wait until it has read this one

    def submit(self, sequences: list[Sequence]) -> None:
        if self._num_allowed <= 0:
            raise Overloaded("full", 1.0)
        self._num_allowed -= 1
        for sequence in sequences:
            text = LETTERS.decode(sequence.source_ids[1:-1])
            self.read.append(text)
            hypothesis = DecodedHypothesis(tuple(LETTERS.encode(self._write(text))), -0.5, FinishReason.STOP)
            self._held.append(SequenceUpdate(sequence, FinishReason.STOP, (hypothesis,)))
            if self.holds_until in (None, text) or not text.isalpha():
                updates, self._held = self._held, []
                asyncio.get_running_loop().call_soon(self.translator.deliver, updates)

    def check_queue(self, *_: object) -> None: ...

    def abort(self, _: object) -> None: ...


@pytest.fixture(scope="module")
def serve(tiny_bundle: Path) -> Callable[..., tuple[Translator, WritingEngine]]:
    def served(
        write: Write, num_allowed: int = 9, symbols: tuple[str, ...] = SYMBOLS, cache_bytes: int = 0, **model: Any
    ) -> tuple[Translator, WritingEngine]:
        manifest = letters_manifest(tiny_bundle, symbols=symbols)
        engine = WritingEngine(write, num_allowed)
        engine.translator = translator_of(
            [model_of(manifest, LETTERS, engine, **model)], LIMITS, cache_bytes=cache_bytes
        )
        return engine.translator, engine

    return served


def translated(translator: Translator, text: str, **changes: Any) -> tuple[str, list[Flag]]:
    async def scenario() -> Any:
        return await asyncio.wait_for(
            translator.translate(TranslationRequest((text,), "en", "de", **changes)), patient(5)
        )

    (translation,) = asyncio.run(scenario()).translations
    return translation.text, [flag for segment in translation.segments for flag in segment.flags]


def test_what_obviously_stands_for_a_number_is_corrected(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("2339", "239"))
    assert translated(translator, "There are 2339 books.") == ("There are 2339 books.", [])
    assert len(engine.read) == 1


def test_a_lost_number_is_translated_again_as_a_placeholder(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("33 ", ""))
    assert translated(translator, "There are 33 books.") == ("There are 33 books.", [])
    assert engine.read == ["There are 33 books.", f"There are {A} books."]


def test_it_is_translated_again_while_others_are_decoded(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("33 ", ""))
    engine.holds_until = again = f"There are {A} books."
    texts = ("abc", "There are 33 books.", "def")

    async def scenario() -> Any:
        return await asyncio.wait_for(translator.translate(TranslationRequest(texts, "en", "de")), patient(5))

    assert [each.text for each in asyncio.run(scenario()).translations] == list(texts)
    assert engine.read == ["There are 33 books.", "abc", "def", again]


def test_a_number_that_is_lost_twice_is_flagged(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("33 ", "").replace(f"{A} ", ""))
    text, flags = translated(translator, "There are 33 books.")
    assert "33" in text
    assert flags == [Flag.NUMBERS]
    assert len(engine.read) == 2


def test_a_busy_engine_leaves_the_first_answer_with_its_flag(serve: Any) -> None:
    translator, _ = serve(lambda text: text.replace("33 ", ""), num_allowed=1)
    assert translated(translator, "There are 33 books.") == ("There are books.", [Flag.NUMBERS])


def test_a_model_without_symbols_decodes_once(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("33 ", ""), symbols=())
    text, flags = translated(translator, "There are 33 books.")
    assert "33" in text
    assert flags == [Flag.NUMBERS]
    assert len(engine.read) == 1


def test_numbers_within_words_are_protected_with_them(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("F3 ", "").replace("B2B2C ", ""))
    assert translated(translator, "Press F3 in B2B2C now.") == ("Press F3 in B2B2C now.", [])
    assert engine.read[1:] == [f"Press {A} in {B} now."]


@pytest.mark.parametrize("symbols", [SYMBOLS, ()])
def test_identifiers_are_placeholders(serve: Any, symbols: tuple[str, ...]) -> None:
    translator, engine = serve(str, symbols=symbols)
    assert translated(translator, "Set user_name to 10.0.0.1 now.") == ("Set user_name to 10.0.0.1 now.", [])
    assert engine.read == [f"Set {A} to {B} now." if symbols else "Set user_name to 10.0.0.1 now."]


def test_a_call_and_a_server_can_turn_it_off(serve: Any) -> None:
    off, on = (RequestedOptions(check_numbers=on) for on in (False, True))
    text = "Set user_name to 33 now."
    for default, option in ((True, off), (False, RequestedOptions())):
        translator, engine = serve(lambda text: text.replace("33 ", ""), checks_numbers=default)
        assert translated(translator, text, options=option) == ("Set user_name to now.", [])
        assert engine.read == [text]
    translator, _ = serve(lambda text: text.replace("33 ", ""), checks_numbers=False)
    assert translated(translator, text, options=on) == (text, [])


def test_a_cached_answer_is_the_corrected_one(serve: Any) -> None:
    translator, engine = serve(lambda text: text.replace("33 ", ""), cache_bytes=100_000)
    for _ in range(2):
        assert translated(translator, "There are 33 books.") == ("There are 33 books.", [])
    assert len(engine.read) == 2


def test_a_stream_gives_what_a_call_gives(serve: Any) -> None:
    translator, _ = serve(lambda text: text.replace("33 ", ""))

    async def scenario() -> list[str]:
        request = TranslationRequest(("There are 33 books. And 7.",), "en", "de")
        return [event.delta async for event in translator.stream(request)]

    assert "".join(asyncio.run(asyncio.wait_for(scenario(), patient(5)))) == "There are 33 books. And 7."


def test_positions_move_with_what_is_corrected() -> None:
    kept = Protected(8, 11, "{0}", Flag.PLACEHOLDER)
    segment = PlannedSegment(0, "2339 of {0}", "2339 of {0}", (1,), (kept,), has_numbers=True)
    links = (AlignedSpan(0, 4, 0, 3), AlignedSpan(5, 7, 4, 7), AlignedSpan(8, 11, 8, 11))
    found = correct(segment, "239 von {0}", [Span(8, 11)], links, GERMAN)
    assert found.text == "2339 von {0}"
    assert found.places == [Span(9, 12)]
    assert [found.text[link.target_start : link.target_end] for link in found.alignment] == ["2339", "von", "{0}"]


def test_the_callers_prefix_may_have_any_numbers() -> None:
    segment = PlannedSegment(0, "33 books", "33 books", (1,), output_prefix_ids=(5,), has_numbers=True)
    assert correct(segment, "2 x 33 Bücher", (), (), GERMAN).is_right
    assert not correct(segment, "2 x 3 Bücher", (), (), GERMAN).is_right


WORDS = ["the", "See", "33", "2,339", "10:30", "user_name", "/etc/x", "1.2.3", "-5", "II", "{0}", "of", "x."]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_nothing_is_changed_without_a_flag(serve: Any, words: list[str], chance: Any) -> None:
    def write(text: str) -> str:
        return " ".join(word for word in text.split(" ") for _ in range(chance.choice([0, 1, 1, 2])))

    text = " ".join(words)
    translation, flags = translated(serve(write)[0], text)
    kept = [word for word in words if word in translation.split(" ") or word.replace(",", ".") in translation]
    assert flags or all(word in kept for word in words if any(map(str.isdigit, word)) or "/" in word)
