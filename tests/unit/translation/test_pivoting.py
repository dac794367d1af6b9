"""Calls of two legs, over engines that answer when the test decides: each reverses the letters of what it reads."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair
from service.domain.errors import EngineFailure, InvalidRequest, Overloaded, TooMany
from service.domain.options import RequestedOptions
from service.domain.translation import CallLimits, SplitSentences, StreamEvent, TranslationRequest
from service.engine.sequence import Sequence, SequenceProgress
from service.translation import steps
from service.translation.translator import Translator
from tests.patience import patient
from tests.unit.translation.letters import PAIR, LetterTokenizer
from tests.unit.translation.scripted_engine import ScriptedEngine, answer, model_of, translator_of

LIMITS = CallLimits(max_characters=1_000_000, max_segments=8, max_answer_characters=4_000_000)


class Leg(ScriptedEngine):
    """An engine that says how long sequences would take on it, by their rows."""

    seconds_each = 0.0

    def check_alike(self, sequences: list[Sequence]) -> float:
        return super().check_alike(sequences) + sum(each.num_slots for each in sequences) * self.seconds_each

    def open_sequences(self) -> list[Sequence]:
        """Return what has been submitted since the last time."""
        new, self.submitted = self.submitted, []
        return new


@pytest.fixture
def make(tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Translator, Leg, Leg]]:
    monkeypatch.setattr(steps, "_MAX_INLINE_SECONDS", 60.0)
    manifest = Manifest.load(tiny_bundle)

    def translator() -> tuple[Translator, Leg, Leg]:
        first, second = Leg(), Leg()
        models = []
        for engine, source, target in [(first, "fr", "en"), (second, "en", "de")]:
            pair = LanguagePair(source, target, PAIR.source_prefix_ids, PAIR.target_prefix_ids)
            own = dataclasses.replace(manifest, name=f"{source}-{target}", languages=(pair,))
            models.append(model_of(own, LetterTokenizer(), engine))
        return translator_of(models, LIMITS, pivots=["en"]), first, second

    return translator


def request(*texts: str, **changes: Any) -> TranslationRequest:
    fields = {"texts": texts, "source_language_code": "fr", "target_language_code": "de"}
    return TranslationRequest(**(fields | changes))


async def settled() -> None:
    """Let all that does not wait for an engine run."""
    for _ in range(20):
        await asyncio.sleep(0)


def read(sequences: Iterable[Sequence]) -> list[str]:
    """Return what sequences' sources say."""
    return [LetterTokenizer().decode(each.source_ids[len(PAIR.source_prefix_ids) : -1]) for each in sequences]


async def test_a_sentence_goes_on_before_the_others_have_ended(make: Any) -> None:
    translator, first, second = make()
    task = asyncio.create_task(translator.translate(request("abc\ndef", "ghi")))
    await settled()
    one, two, three = first.open_sequences()
    assert read([one, two, three]) == ["abc", "def", "ghi"]
    translator.deliver([answer(two)])
    await settled()
    assert read(second.submitted) == ["fed"]
    translator.deliver([answer(one), answer(three)])  # of one turn
    await settled()
    assert read(second.submitted) == ["fed", "cba", "ihg"]
    translator.deliver([answer(each) for each in second.open_sequences()])
    result = await asyncio.wait_for(task, patient(5))
    assert [each.text for each in result.translations] == ["abc\ndef", "ghi"]
    assert [each.pivot_language_code for each in result.translations] == ["en", "en"]
    assert (result.model, [model.leases.num_held for model in translator.models()]) == ("en-de", [0, 0])


async def test_the_second_model_keeps_what_the_first_kept(make: Any) -> None:
    translator, first, second = make()
    task = asyncio.create_task(translator.translate(request("abc {name} def")))
    await settled()
    translator.deliver([answer(each) for each in first.open_sequences()])
    await asyncio.wait_for(second.arrived.wait(), patient(5))  # restoring runs on another thread
    (sequence,) = second.open_sequences()
    assert "{name}" in read([sequence])[0]  # the bundle has no reserved symbols
    translator.deliver([answer(sequence)])
    [translation] = (await asyncio.wait_for(task, patient(5))).translations
    assert translation.text.count("{name}") == 1


@pytest.mark.parametrize(
    ("options", "rows"),
    [({}, 1), ({"beam_size": 4, "num_hypotheses": 4}, 4), ({"temperature": 0.5, "num_hypotheses": 3}, 3)],
)
async def test_the_rows_of_the_second_count_before_the_first(make: Any, options: dict[str, Any], rows: int) -> None:
    translator, first, second = make()
    second.seconds_each = 1.0
    task = asyncio.create_task(translator.translate(request("abc", "def", options=RequestedOptions(**options))))
    await settled()
    assert [each.reserved_seconds for each in first.submitted] == [2.0 * rows] * 2
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("streams", [False, True])
async def test_nothing_is_spent_on_the_first_if_the_second_refuses(make: Any, *, streams: bool) -> None:
    translator, first, second = make()
    second.refusal = Overloaded("full", 1.0)
    work = anext(translator.stream(request("abc"))) if streams else translator.translate(request("abc"))
    with pytest.raises(Overloaded):
        await work
    assert not first.submitted


async def test_the_time_of_the_second_is_reserved_in_the_first(make: Any) -> None:
    translator, first, second = make()
    second.seconds_each = 3.0
    task = asyncio.create_task(translator.translate(request("abc", "def", deadline_seconds=1e12)))
    await settled()
    assert [each.reserved_seconds for each in first.submitted] == [6.0, 6.0]
    translator.deliver([answer(each) for each in first.open_sequences()])
    await settled()
    assert [each.reserved_seconds for each in second.submitted] == [0.0, 0.0]
    assert [each.is_continued for each in second.submitted] == [True, True]
    translator.deliver([answer(each) for each in second.open_sequences()])
    await asyncio.wait_for(task, patient(5))


@pytest.mark.parametrize("number", [0, 1])
async def test_a_call_is_refused_if_the_queue_of_either_is_full(make: Any, number: int) -> None:
    translator, *engines = make()
    engines[number].is_full = True
    with pytest.raises(Overloaded):
        await translator.translate(request("abc"))
    assert not engines[0].submitted


@pytest.mark.parametrize("streams", [False, True])
async def test_what_fails_in_the_second_aborts_the_rest_of_the_first(make: Any, streams: bool) -> None:
    translator, first, second = make()
    task = asyncio.create_task(all_of(translator, request("abc", "def"), streams))
    await settled()
    one, two = first.open_sequences()
    second.refusal = EngineFailure("broken")
    translator.deliver([answer(one)])
    with pytest.raises(EngineFailure):
        await asyncio.wait_for(task, patient(5))
    assert first.aborted == [two]
    assert translator.num_pending == 0


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("num_answered", [0, 1, 2])
async def test_cancelling_a_call_aborts_both_legs(make: Any, streams: bool, num_answered: int) -> None:
    translator, first, second = make()
    task = asyncio.create_task(all_of(translator, request("abc", "def"), streams))
    await settled()
    sequences = first.open_sequences()
    translator.deliver([answer(each) for each in sequences[:num_answered]])
    await settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert first.aborted == sequences[num_answered:]
    assert second.aborted == second.submitted
    assert len(second.aborted) == num_answered
    assert translator.num_pending == 0


async def test_a_stream_grows_by_what_the_second_writes(make: Any) -> None:
    translator, first, second = make()
    events: asyncio.Queue[StreamEvent] = asyncio.Queue()

    async def follow() -> None:
        async with aclosing(translator.stream(request("abc def\nghi", split_sentences=SplitSentences.ON))) as stream:
            async for event in stream:
                events.put_nowait(event)

    task = asyncio.create_task(follow())
    await settled()
    translator.deliver([answer(each) for each in first.open_sequences()])
    await settled()
    one, two = second.open_sequences()
    letters = [*LetterTokenizer().encode("abc def")]

    async def told(sequence: Sequence, num_letters: int) -> list[str]:
        translator.deliver([], [SequenceProgress(sequence, tuple(letters[:num_letters]))])
        await settled()
        return [events.get_nowait().delta for _ in range(events.qsize())]

    assert await told(two, 4) == []  # its turn comes later
    assert await told(one, 3) == []  # a word may go on
    assert await told(one, 4) == ["abc"]
    translator.deliver([answer(two), answer(one)])
    await asyncio.wait_for(task, patient(5))
    rest = [events.get_nowait() for _ in range(events.qsize())]
    assert "abc" + "".join(event.delta for event in rest) == "abc def\nghi"
    assert rest[-1].translation is not None
    assert rest[-1].translation.text == "abc def\nghi"


async def test_limits_and_options_are_those_of_the_call(make: Any) -> None:
    translator, first, _ = make()
    with pytest.raises(InvalidRequest, match=r"max_output_tokens"):
        await translator.translate(request("abc", options=RequestedOptions(max_output_tokens=10_000)))
    sampled = RequestedOptions(num_hypotheses=4, temperature=1.0)
    with pytest.raises(TooMany):  # three segments of four samples each
        await translator.translate(request("abc", "def", "ghi", options=sampled))
    assert not first.submitted


async def all_of(translator: Translator, asked: TranslationRequest, streams: bool) -> None:
    """Wait for the whole answer."""
    if not streams:
        await translator.translate(asked)
        return
    async with aclosing(translator.stream(asked)) as stream:
        async for _ in stream:
            pass
