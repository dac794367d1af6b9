"""The path from text to text, over an engine that answers when the test decides."""

import asyncio
import dataclasses
import random
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle.manifest import Manifest
from service.domain.call import Call, Phase, begin_call
from service.domain.errors import (
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    NotFound,
    Overloaded,
    TooLong,
    Unavailable,
)
from service.domain.options import RequestedOptions
from service.domain.translation import (
    AlignedSpan,
    CallLimits,
    Priority,
    SplitSentences,
    Term,
    TranslationRequest,
)
from service.engine.sequence import Sequence, SequenceUpdate
from service.models.catalogue import Catalogue
from service.observe.metrics import Metrics
from service.text.glossary import Glossaries
from service.text.spans import TokenSpan
from service.translation import assembling, planning, steps
from service.translation.cache import TranslationCache
from service.translation.translator import Translator
from tests.patience import patient
from tests.unit.translation.letters import EOS, PAIR, LetterTokenizer
from tests.unit.translation.scripted_engine import ScriptedEngine, answer, model_of, translator_of

PREFIX = PAIR.source_prefix_ids
LIMITS = CallLimits(max_characters=1_000_000, max_segments=4096, max_answer_characters=4_000_000)


class SpacelessTokenizer(LetterTokenizer):
    """One id per letter; spaces have none."""

    def encode(self, text: str) -> list[int]:
        return super().encode("".join(text.split()))

    def source_spans(self, text: str) -> list[TokenSpan]:
        return [(place, place + 1) for place, letter in enumerate(text) if not letter.isspace()]


@pytest.fixture(scope="module")
def make(tiny_bundle: Path) -> Any:
    manifest = dataclasses.replace(Manifest.load(tiny_bundle), languages=(PAIR,))

    def translator(cache_bytes: int = 0, metrics: Metrics | None = None, **changes: Any) -> Any:
        engine = ScriptedEngine()
        model = model_of(dataclasses.replace(manifest, **changes), SpacelessTokenizer(), engine)
        return translator_of([model], LIMITS, cache_bytes=cache_bytes, metrics=metrics), engine

    return translator


def request(*texts: str, **changes: Any) -> Any:
    fields = {"texts": texts, "source_language_code": "en", "target_language_code": "de"}
    return TranslationRequest(**(fields | changes))


@pytest.fixture(autouse=True)
def planned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan on the event loop, however busy the machine is, so that a call that was begun has reached the engine."""
    monkeypatch.setattr(steps, "_MAX_INLINE_SECONDS", 60.0)


async def begin(translator: Any, asked: Any) -> Any:
    """Start a call and let it run until it waits for the engine."""
    task = asyncio.create_task(translator.translate(asked))
    for _ in range(2):  # segments with numbers have a task of their own
        await asyncio.sleep(0)
    return task


async def finish(translator: Any, engine: Any, task: Any) -> Any:
    """Answer all that the engine has got; return the result."""
    translator.deliver([answer(sequence) for sequence in engine.submitted])
    return await asyncio.wait_for(task, patient(5))


SPACED = st.lists(st.sampled_from(("a", "bc", " cab", "   ab")), max_size=12).map("".join)


@given(st.lists(SPACED, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_translations_come_in_the_order_of_the_texts(make: Any, texts: list[str], chance: random.Random) -> None:
    async def scenario() -> Any:
        translator, engine = make()
        task = await begin(translator, request(*texts, split_sentences=SplitSentences.OFF))
        chance.shuffle(engine.submitted)
        return await finish(translator, engine, task)

    result = asyncio.run(scenario())
    expected = [re.sub(r"\S(?: ?\S)*", lambda found: "".join(found[0].split())[::-1], text) for text in texts]
    assert [translation.text for translation in result.translations] == expected
    assert (result.model, result.model_version) == ("tiny", "1")


@settings(max_examples=settings().max_examples // 2)  # each makes two translators
@given(
    st.lists(
        st.text("abcé漢 .,?!:-'({\n", max_size=12)
        | st.sampled_from(["See {0}", "A ab. B ca!", "ab bc?", "1 2", "a b."]),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(SplitSentences),
    st.fixed_dictionaries(
        {},
        optional={
            "options": st.sampled_from(
                [
                    RequestedOptions(return_scores=True),
                    RequestedOptions(seed=1),
                    RequestedOptions(num_hypotheses=2, temperature=0.5, seed=3),
                ]
            ),
            "preserve_formatting": st.just(True),
            "return_alignments": st.just(True),
            "terms": st.just((Term("ab", "x"),)),
            "target_prefixes": st.just(True),
        },
    ),
)
def test_simple_sentences_get_the_same_answer(
    make: Any, texts: list[str], mode: SplitSentences, chosen: dict[str, Any]
) -> None:
    if "target_prefixes" in chosen:
        chosen["target_prefixes"] = ("b",) * len(texts)

    async def scenario() -> Any:
        translator, engine = make()
        try:
            task = await begin(translator, request(*texts, split_sentences=mode, **chosen))
            result = await finish(translator, engine, task)
        except InvalidRequest as error:
            result = str(error)
        submitted = [(each.source_ids, each.forced_ids, each.options, each.wants_progress) for each in engine.submitted]
        return result, submitted

    short = asyncio.run(scenario())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "is_simple_sentence", lambda _: False)
        patch.setattr(assembling, "_is_whole", lambda _: False)
        assert short == asyncio.run(scenario())


async def test_a_sequence_carries_what_the_engine_needs(make: Any) -> None:
    translator, engine = make()
    options = RequestedOptions(beam_size=3, max_output_tokens=5)
    deadline = time.monotonic() + 9
    asked = request("ab", options=options, deadline_seconds=deadline, priority=Priority.LOW)
    task = await begin(translator, asked)
    (sequence,) = engine.submitted
    assert sequence.source_ids == (*PREFIX, ord("a") + 10, ord("b") + 10, EOS)
    assert (sequence.target_prefix_ids, sequence.priority) == ((8,), Priority.LOW)
    assert (sequence.options.beam_size, sequence.options.max_output_tokens) == (3, 5)
    assert sequence.deadline_seconds == pytest.approx(deadline, abs=2)
    assert time.monotonic() - sequence.arrived_seconds < 2
    assert (await finish(translator, engine, task)).translations[0].num_source_tokens == 4


@pytest.mark.parametrize(("return_scores", "score"), [(True, -0.5), (False, None)])
async def test_scores_come_when_asked_for(make: Any, return_scores: bool, score: float | None) -> None:
    translator, engine = make()
    task = await begin(translator, request("ab", options=RequestedOptions(return_scores=return_scores)))
    assert (await finish(translator, engine, task)).translations[0].hypotheses[0].score == score


async def test_an_overloaded_engine_refuses_before_anything_is_planned_unless_answers_are_kept(make: Any) -> None:
    translator, engine = make()
    engine.is_full = True
    with pytest.raises(Overloaded):
        await translator.translate(request("ab"))
    assert not engine.submitted
    translator, engine = make(1_000_000)
    first = await finish(translator, engine, await begin(translator, request("ab")))
    engine.is_full = True
    assert await translator.translate(request("ab")) == first


async def test_each_sample_is_a_sequence_with_a_seed_of_its_own(make: Any) -> None:
    async def seeds(seed: int | None) -> Any:
        translator, engine = make()
        options = RequestedOptions(num_hypotheses=3, temperature=0.7, top_k=5, seed=seed)
        task = await begin(translator, request("ab", "c", options=options))
        assert len(engine.submitted) == 6
        assert {sequence.options.num_hypotheses for sequence in engine.submitted} == {1}
        assert {sequence.options.top_k for sequence in engine.submitted} == {5}
        translations = (await finish(translator, engine, task)).translations
        assert [(each.text, len(each.hypotheses)) for each in translations] == [("ba", 3), ("c", 3)]
        return [sequence.options.seed for sequence in engine.submitted]

    first, again, by_chance, by_chance_again = [await seeds(seed) for seed in (7, 7, None, None)]
    assert first == again
    assert len(set(first)) == 3
    assert not set(by_chance) & set(by_chance_again)


async def test_what_is_kept_is_not_decoded_again(make: Any) -> None:
    async def ask(translator: Any, engine: Any, asked: Any) -> Any:
        """Return how many sequences the engine got, and the translations."""
        engine.submitted.clear()
        result = await finish(translator, engine, await begin(translator, asked))
        return len(engine.submitted), [each.text for each in result.translations]

    metrics = Metrics()
    translator, engine = make(1_000_000, metrics)
    assert await ask(translator, engine, request("ab", "", "cd")) == (2, ["ba", "", "dc"])
    assert await ask(translator, engine, request("cd", "ef", "ab")) == (1, ["dc", "fe", "ba"])
    assert await ask(translator, engine, request("cd", "ab")) == (0, ["dc", "ba"])
    other = RequestedOptions(max_output_tokens=7)
    assert await ask(translator, engine, request("ab", options=other)) == (1, ["ba"])
    sampled, seeded = RequestedOptions(temperature=1.0), RequestedOptions(temperature=1.0, seed=3)
    assert (await ask(translator, engine, request("ab", options=sampled)))[0] == 1
    assert (await ask(translator, engine, request("ab", options=sampled)))[0] == 1, "chance is not kept"
    assert (await ask(translator, engine, request("ab", options=seeded)))[0] == 1
    assert (await ask(translator, engine, request("ab", options=seeded)))[0] == 0
    text, _ = metrics.render()
    assert b'cache_lookups_total{model="tiny",outcome="hit"} 5.0' in text
    assert b'cache_lookups_total{model="tiny",outcome="miss"} 5.0' in text


async def test_what_is_kept_without_attention_is_decoded_again_to_be_aligned(make: Any) -> None:
    def recorded(sequence: Sequence) -> SequenceUpdate:
        """Return the letters in reverse, with what they attended to: nothing of the prefix and the end."""
        update = answer(sequence)
        (hypothesis,) = update.hypotheses
        if sequence.wants_attention:
            attention = np.eye(len(sequence.source_ids), dtype=np.float32)[len(PREFIX) : -1][::-1]
            hypothesis = dataclasses.replace(hypothesis, attention=attention)
        return dataclasses.replace(update, hypotheses=(hypothesis,))

    async def ask(translator: Any, engine: Any, **changes: Any) -> tuple[list[bool], list[AlignedSpan]]:
        """Return whether each sequence that the engine got wants attention, and the alignment of the translation."""
        engine.submitted.clear()
        task = await begin(translator, request("ab", **changes))
        translator.deliver([recorded(sequence) for sequence in engine.submitted])
        (translation,) = (await asyncio.wait_for(task, patient(5))).translations
        return [each.wants_attention for each in engine.submitted], list(translation.alignment)

    translator, engine = make(1_000_000, precision="int8")
    assert await ask(translator, engine) == ([False], [])
    word = [AlignedSpan(0, 2, 0, 2)]
    for expected in ([True], []):
        sequences, alignment = await ask(translator, engine, return_alignments=True)
        assert (sequences, alignment) == (expected, word)
    assert await ask(translator, engine) == ([], [])


async def test_cancelling_a_call_aborts_what_is_unfinished(make: Any) -> None:
    translator, engine = make()
    task = await begin(translator, request("a", "b", "c"))
    first, second, third = engine.submitted
    translator.deliver([answer(first)])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.aborted == [second, third]
    translator.deliver([answer(second), answer(third)])  # too late, so ignored


@pytest.mark.parametrize(("source", "num_parts"), [("en", 2), ("", 1)])
async def test_closing_a_stream_aborts_what_is_unfinished_at_once(make: Any, source: str, num_parts: int) -> None:
    translator, engine = make()
    texts = ["where is the train", "save the file", "find my keys"]
    stream = translator.stream(request(*texts, source_language_code=source))
    first = asyncio.create_task(anext(stream))
    await asyncio.wait_for(engine.arrived.wait(), patient(30))  # detection loads its model
    one, two, three = engine.submitted
    translator.deliver([answer(one), answer(two)])
    parts = [await asyncio.wait_for(first, patient(5)), *[await anext(stream) for _ in range(num_parts - 1)]]
    assert [part.text_index for part in parts] == list(range(num_parts))
    assert all(part.translation is not None for part in parts)
    assert not await translator.models()[0].leases.none_held(0.01)
    await stream.aclose()
    assert engine.aborted == [three]
    assert translator.num_pending == 0
    assert await translator.models()[0].leases.none_held(0.01)


async def test_a_failed_sequence_ends_its_stream_and_aborts_the_rest(make: Any) -> None:
    translator, engine = make()
    stream = translator.stream(request("a", "b", "c"))
    first = asyncio.create_task(anext(stream))
    await asyncio.wait_for(engine.arrived.wait(), patient(5))
    one, two, three = engine.submitted
    translator.deliver([answer(one)])
    assert (await asyncio.wait_for(first, patient(5))).translation.text == "a"
    translator.deliver([SequenceUpdate(two, None, error=EngineFailure("numbers ran out"))])
    with pytest.raises(EngineFailure, match="numbers ran out"):
        await asyncio.wait_for(anext(stream), patient(5))
    assert engine.aborted == [three]
    assert translator.num_pending == 0


async def test_one_failed_sequence_fails_the_call_and_aborts_the_rest(make: Any) -> None:
    translator, engine = make()
    task = await begin(translator, request("a", "b", "c"))
    first, second, third = engine.submitted
    translator.deliver([SequenceUpdate(second, None, error=EngineFailure("numbers ran out"))])
    with pytest.raises(EngineFailure, match="numbers ran out"):
        await asyncio.wait_for(task, patient(5))
    assert engine.aborted == [first, third]


@pytest.mark.parametrize("refusal", [Overloaded("full", 1.0), Unavailable("stopped")])
async def test_a_refusal_of_the_engine_reaches_the_caller_and_leaves_nothing_behind(make: Any, refusal: Any) -> None:
    translator, engine = make()
    engine.refusal = refusal
    with pytest.raises(type(refusal)):
        await translator.translate(request("a"))
    assert engine.aborted == []
    assert translator.num_pending == 0


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(), InvalidRequest),
        (request("a", model="none"), NotFound),
        (request("a", options=RequestedOptions(beam_size=0)), InvalidRequest),
        (request("a", "b" * 62), None),
        (request("a", "b" * 63, is_strict=True), TooLong),
        (request("a", deadline_seconds=0.0), DeadlineExceeded),
    ],
)
async def test_what_can_not_be_taken_is_refused_before_the_engine_sees_it(make: Any, asked: Any, error: Any) -> None:
    translator, engine = make()
    task = await begin(translator, asked)
    if error is None:
        assert len(engine.submitted) == 2
        await finish(translator, engine, task)
        return
    with pytest.raises(error):
        await asyncio.wait_for(task, patient(5))
    assert engine.submitted == []


async def test_before_models_are_loaded_nothing_is_served() -> None:
    translator = Translator(Metrics(), TranslationCache(0), Glossaries(), LIMITS)
    with pytest.raises(Unavailable, match="loading"):
        await translator.translate(request("a"))
    with pytest.raises(Unavailable, match="loading"):
        translator.models()


@pytest.mark.parametrize("num_answers", [3, 2])
async def test_a_call_waits_until_its_first_text_runs_and_runs_until_its_last_has_ended(
    make: Any, num_answers: int
) -> None:
    translator, engine = make()
    begin_call(record := Call())
    task = await begin(translator, request("a", "b", "c"))
    now = time.monotonic()
    times = ((now - 30, now - 29, now - 10), (now - 35, now - 34, now - 15), (0.0, 0.0, now - 5))
    updates = []
    for sequence, (admitted, encoded, finished) in list(zip(engine.submitted, times, strict=True))[:num_answers]:
        sequence.arrived_seconds, sequence.admitted_seconds, sequence.encoded_seconds = now - 40, admitted, encoded
        updates.append(dataclasses.replace(answer(sequence), finished_seconds=finished))
    translator.deliver(updates)
    statistics = translator.models()[0].statistics
    if num_answers < 3:
        task.cancel()
        await asyncio.wait({task}, timeout=patient(5))
        assert record.seconds(Phase.DECODE) >= 34, "until now"
        assert (statistics.queue.count, statistics.failed.count) == (0, 1)
        return
    await asyncio.wait_for(task, patient(5))
    engine_seconds = [round(record.seconds(phase), 3) for phase in (Phase.QUEUE, Phase.ENCODE, Phase.DECODE)]
    assert engine_seconds == [5, 1, 29]
    assert [round(each.seconds, 3) for each in (statistics.queue, statistics.decode)] == [5, 30]


@pytest.mark.parametrize("ending", ["answer", "failure", "cancel"])
async def test_a_call_holds_its_model_until_it_ends(make: Any, ending: str) -> None:
    translator, engine = make()
    leases = translator.models()[0].leases
    assert await leases.none_held(0.01)
    task = await begin(translator, request("a"))
    translator.serve(Catalogue())  # another catalogue does not affect it
    assert not await leases.none_held(0.01)
    (sequence,) = engine.submitted
    if ending == "cancel":
        task.cancel()
    elif ending == "failure":
        translator.deliver([SequenceUpdate(sequence, None, error=EngineFailure("numbers ran out"))])
    else:
        translator.deliver([answer(sequence)])
    assert await leases.none_held(5)
    await asyncio.wait({task}, timeout=patient(5))
    assert task.done()


def _terms(num_terms: int, length: int) -> tuple[Term, ...]:
    return tuple(Term(f"{number:0{length}}", "x") for number in range(num_terms))


@pytest.mark.parametrize(
    "asked",
    [request(*["a" * 50] * 400), request("a" * 500, terms=_terms(1, 1)), request("a", terms=_terms(50, 100))],
    ids=["many characters", "terms may be found at each", "long terms"],
)
async def test_large_calls_do_not_hold_the_event_loop(make: Any, asked: Any) -> None:
    """The tokenizer of a large call runs on another thread: the loop continues while it is stuck."""
    translator, engine = make()
    released = threading.Event()
    tokenizer = translator.models()[0].tokenizer
    encode = tokenizer.encode
    tokenizer.encode = lambda text: released.wait(patient(10)) and encode(text)
    task = await begin(translator, asked)
    assert engine.submitted == []
    released.set()
    await asyncio.wait_for(engine.arrived.wait(), patient(5))
    assert len((await finish(translator, engine, task)).translations) == len(asked.texts)


@pytest.mark.parametrize("asked", [request("a" * 50), request("a" * 50, terms=_terms(10, 10))], ids=["plain", "terms"])
async def test_small_calls_are_planned_at_once(make: Any, asked: Any) -> None:
    translator, engine = make()
    task = await begin(translator, asked)
    assert len(engine.submitted) == 1
    await finish(translator, engine, task)
