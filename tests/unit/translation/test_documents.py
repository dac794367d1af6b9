"""From texts to segments and back, with a model that writes what it reads."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.checkpoint import checkpoints
from service.domain.errors import TooLong, TooMany
from service.domain.translation import (
    FinishReason,
    Flag,
    Hypothesis,
    MimeType,
    OwnPlaceholder,
    SplitSentences,
    Term,
    Translation,
    TranslationRequest,
)
from service.engine.sequence import DecodedHypothesis
from service.text.normalization import visible
from service.text.sentences import line_ends
from service.text.terms import TermIndex
from service.text.tokenizers import Tokenizer
from service.translation.assembling import assemble
from service.translation.checks import AnswerSize
from service.translation.planning import Planner
from service.translation.restoring import Restorer
from service.translation.segments import PlannedSegment, PlannedText
from service.translation.streaming import TextStream
from tests.unit.translation.letters import PAIR, SYMBOLS, LetterTokenizer, PoorTokenizer, is_known, letters_manifest

LETTERS = LetterTokenizer()
POOR = PoorTokenizer()
# Characters of which placeholders are made occur only in whole placeholders: parts of them may form others.
SIGNS = st.characters(codec="utf-8", exclude_characters="@%{}<>:$#/")
PARTS = (
    "A sentence. ",
    "Another one! ",
    "\n",
    "\n\n",
    "- ",
    "• item\n",
    "{{x}}",
    "%s",
    " 42 ",
    "\t",
    "\u2028",
    "\ue000",
)
CONTROLS = re.compile(r"[\x00-\x1f\x85\u2028\u2029]")
DOCUMENTS = st.lists(
    st.one_of(
        st.text(SIGNS, max_size=30),
        st.sampled_from(PARTS),
        st.sampled_from([" https://example.org/a?b=c ", " x@example.org ", " <b> ", " </b> "]),
    ),
    max_size=25,
).map("".join)


HOW = st.sampled_from(SplitSentences), st.sampled_from([(), SYMBOLS]), st.sampled_from([12, 60, 10_000])


def asked(*texts: str, **changes: Any) -> TranslationRequest:
    return TranslationRequest(texts, "en", "de", **changes)


def planner_of(
    bundle: Path,
    request: TranslationRequest,
    max_segments: int = 4096,
    size: AnswerSize | None = None,
    tokenizer: Tokenizer = LETTERS,
    limit: int = 24,
    symbols: tuple[str, ...] = SYMBOLS,
) -> Planner:
    manifest = letters_manifest(bundle, max_source_tokens=limit, symbols=symbols)
    terms = [TermIndex(request.terms)] if request.terms else []
    return Planner(request, manifest, PAIR, tokenizer, max_segments, size or AnswerSize(10_000_000), terms)


@pytest.fixture(scope="module")
def plan(tiny_bundle: Path) -> Callable[..., PlannedText]:
    def planned(
        request: TranslationRequest,
        limit: int = 10_000,
        symbols: tuple[str, ...] = SYMBOLS,
        tokenizer: Tokenizer = LETTERS,
    ) -> PlannedText:
        return planner_of(tiny_bundle, request, tokenizer=tokenizer, limit=limit, symbols=symbols).plan(0)

    return planned


def candidates(
    planned: PlannedText, write: Callable[[str], str] = str, formatting: bool = False, tokenizer: Tokenizer = LETTERS
) -> list[Any]:
    """Return the output for each segment of a model that writes `write(what it reads)`."""
    restorer = Restorer(tokenizer, None, PAIR, preserves_formatting=formatting, returns_scores=True)
    segments = dict(enumerate(planned.segments))
    decoded = {
        number: (DecodedHypothesis(tuple(tokenizer.encode(write(segment.fed))), -0.5, FinishReason.STOP),)
        if segment.source_ids
        else ()
        for number, segment in segments.items()
    }
    return list(restorer.restore(segments, decoded, AnswerSize(10_000_000)).values())


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Ab cd. " * 100, {}),
        ("a\n" * 100_000, {}),
        ("a b " * 200_000, {}),
        ("<p>a" * 10_000, {"mime_type": MimeType.HTML}),
        ("<td>1<td>a" * 100, {"mime_type": MimeType.HTML}),
    ],
)
def test_planning_stops_at_the_most_segments(
    tiny_bundle: Path, text: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    num_encoded = 0

    def counted(each: str) -> list[int]:
        nonlocal num_encoded
        num_encoded += len(each)
        return LETTERS.encode(each)

    tokenizer = LetterTokenizer()
    monkeypatch.setattr(tokenizer, "encode", counted)
    planner = planner_of(tiny_bundle, asked(text, **options), 50, tokenizer=tokenizer)
    with pytest.raises(TooMany, match="more than 50 segments") as error:
        planner.plan(0)
    assert error.value.field == "texts"
    assert num_encoded < 100_000


def test_a_text_whose_planning_was_interrupted_is_counted_once(tiny_bundle: Path) -> None:
    texts = ("A b. C d! {0}\n" * 12, "Hello")
    num_segments, num_characters = 2 * 12 + 1, sum(map(len, texts))

    def fresh() -> Planner:
        return planner_of(tiny_bundle, asked(*texts), num_segments, AnswerSize(num_characters))

    expected = [planner.plan(index) for planner in [fresh()] for index in range(2)]

    def interrupted(last: int) -> Planner | None:
        planner, passed = fresh(), itertools.count()

        def check() -> None:
            if next(passed) == last:
                raise InterruptedError

        try:
            with checkpoints(check):
                planner.plan(0)
        except InterruptedError:
            return planner
        return None

    for last in range(1000):
        planner = interrupted(last)
        if planner is None:
            break
        assert [planner.plan(0), planner.plan(1)] == expected
    assert 3 < last < 999


def test_segments_of_all_texts_count_together(tiny_bundle: Path) -> None:
    planner = planner_of(tiny_bundle, asked("a.\nb.", "c.\nd."), 3, AnswerSize(100))
    planner.plan(0)
    with pytest.raises(TooMany):
        planner.plan(1)


def test_an_answer_that_would_be_too_long_is_not_planned(tiny_bundle: Path) -> None:
    request = asked("1 " * 4, "1 " * 2, terms=(Term("1", "x" * 200),))
    for num_hypotheses, longest in ((1, 1_000), (4, 4_000)):
        planner = planner_of(tiny_bundle, request, 50, AnswerSize(longest, num_hypotheses))
        planner.plan(0)
        with pytest.raises(TooLong, match=f"more than {longest} characters"):
            planner.plan(1)


def test_an_answer_that_would_be_too_long_is_not_assembled(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("one. two."))
    given_ = candidates(planned, lambda text: text * 10)
    with pytest.raises(TooLong, match="more than 60 characters"):
        assemble(planned, given_, AnswerSize(60), with_alignment=False)


def even(text: str) -> str:
    """Replace line ends within a segment by spaces, as for the model."""
    return " ".join(text.splitlines()).rstrip()


def translated(planned: PlannedText, write: Callable[[str], str] = str, tokenizer: Tokenizer = LETTERS) -> Translation:
    given = candidates(planned, write, tokenizer=tokenizer)
    return assemble(planned, given, AnswerSize(10_000_000), with_alignment=True)


@given(DOCUMENTS, *HOW)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_a_model_that_repeats_gives_every_text_back(
    plan: Callable[..., PlannedText], text: str, split: SplitSentences, symbols: tuple[str, ...], limit: int
) -> None:
    planned = plan(asked(text, split_sentences=split), limit, symbols)
    assert all(len(segment.source_ids) <= limit for segment in planned.segments)
    translation = translated(planned)
    assert even(translation.text) == even(visible(text).text if translation.segments else text)
    for segment in translation.segments:
        assert even(visible(text[segment.source_start : segment.source_end]).text) == even(
            translation.text[segment.target_start : segment.target_end]
        )
        is_guessed = split is SplitSentences.OFF and not symbols and line_ends(text)
        assert not segment.flags or "\ue000" in text or is_guessed


@given(DOCUMENTS)
def test_so_it_does_with_html(plan: Callable[..., PlannedText], text: str) -> None:
    plain = visible(CONTROLS.sub(" ", text)).text  # in HTML white space of all kinds is a space
    html = f"<p>{plain}</p><pre>{text}</pre>"
    planned = plan(asked(html, mime_type=MimeType.HTML))
    assert translated(planned).text == html


def test_white_space_bullets_and_lines_stay(plan: Callable[..., PlannedText]) -> None:
    text = "  Title \r\n\r\n\t- One thing. Another thing.\n1. 42\n"
    planned = plan(asked(text))
    assert [segment.text for segment in planned.segments] == ["Title", "One thing.", "Another thing."]
    assert translated(planned, str.upper).text == "  TITLE \r\n\r\n\t- ONE THING. ANOTHER THING.\n1. 42\n"


def test_placeholders_never_reach_a_model_with_symbols(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("Hello {{name}}, see https://example.org/x now."))
    (segment,) = planned.segments
    assert segment.fed == f"Hello {SYMBOLS[0]}, see {SYMBOLS[1]} now."
    assert translated(planned, str.upper).text == "HELLO {{name}}, SEE https://example.org/x NOW."


def test_what_is_apart_is_not_read_and_callers_have_placeholders_of_their_own(plan: Callable[..., PlannedText]) -> None:
    text = "{n, plural, one {# file} other {# JIRA-1}}\\nOne\t{% if x %}two{% endif %}"
    planned = plan(asked(text, placeholders=(OwnPlaceholder(r"[A-Z]+-\d+"),)))
    assert [segment.fed for segment in planned.segments if segment.source_ids] == [f"{SYMBOLS[0]} file", "One", "two"]
    assert translated(planned, str.upper).text == text.replace("file", "FILE").replace("One", "ONE").replace(
        "two", "TWO"
    )


def test_positions_are_those_of_the_text_with_what_nobody_sees(plan: Callable[..., PlannedText]) -> None:
    text = "\ufeffsoft\u00adware. \u200bIt is.\u200e"
    translation = translated(plan(asked(text)))
    assert translation.text == "software. It is."
    parts = [text[segment.source_start : segment.source_end] for segment in translation.segments]
    assert parts == ["soft\u00adware.", "It is."]
    for link in translation.alignment:
        assert (
            visible(text[link.source_start : link.source_end]).text
            == translation.text[link.target_start : link.target_end]
        )


def test_what_a_model_loses_is_put_back_and_flagged(plan: Callable[..., PlannedText]) -> None:
    for symbols in (SYMBOLS, ()):
        planned = plan(asked("Hello {{name}} there"), symbols=symbols)
        translation = translated(planned, lambda text: "Hallo da")
        assert translation.text.count("{{name}}") == 1
        assert translation.segments[0].flags == (Flag.PLACEHOLDER,)


def test_terms_become_what_they_must(plan: Callable[..., PlannedText]) -> None:
    terms = (Term("file", "Akte"), Term("Dragoman"))
    planned = plan(asked("Save the file in Dragoman.", terms=terms))
    assert translated(planned, str.lower).text == "save the Akte in Dragoman."
    alone = plan(asked("File", terms=terms))
    assert [segment.source_ids for segment in alone.segments] == [()]
    assert translated(alone).text == "Akte"


@pytest.mark.parametrize("symbols", [SYMBOLS, ()])
@pytest.mark.parametrize("write", [str, str.upper, str.lower, lambda text: text + ".", lambda text: text[::-1]])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("${v} Is open.", "${v}"),
        ("%(n)s Files are open", "%(n)s"),
        ("Files are open: %(n)s", "%(n)s"),
        ("well done :tada:", ":tada:"),
        ("use it with dragoman", "dRagoman"),
        ("Dragoman is a server!", "dRagoman"),
    ],
)
def test_formatting_leaves_what_is_protected_alone(
    plan: Callable[..., PlannedText], text: str, kept: str, write: Callable[[str], str], symbols: tuple[str, ...]
) -> None:
    terms = (Term("Dragoman", "dRagoman", is_case_sensitive=True), Term("dragoman", "dRagoman", is_case_sensitive=True))
    planned = plan(asked(text, terms=terms, preserve_formatting=True), symbols=symbols)
    (candidate,) = candidates(planned, write, formatting=True)[0]
    assert candidate.text.count(kept) == 1
    assert any(candidate.text[part.target_start : part.target_end] == kept for part in candidate.alignment), (
        "it stands where the alignment says"
    )


def test_a_text_that_is_a_placeholder_needs_no_model(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("https://example.org/some/page"))
    assert [segment.source_ids for segment in planned.segments] == [()]
    translation = translated(planned)
    assert (translation.text, translation.num_source_tokens) == ("https://example.org/some/page", 0)


def test_a_long_segment_is_cut_or_refused(plan: Callable[..., PlannedText]) -> None:
    text = "one two three; four five six, seven eight nine"
    pieces = [segment.text for segment in plan(asked(text), limit=24).segments]
    assert pieces == ["one two three;", "four five six,", "seven eight nine"]
    with pytest.raises(TooLong, match=r"texts\[0\] has a segment of 48 tokens; tiny takes up to 24") as error:
        plan(asked(text, is_strict=True), limit=24)
    assert error.value.field == "texts[0]"
    word = "x" * 10_000
    assert "".join(segment.text for segment in plan(asked(word), limit=24).segments) == word
    with pytest.raises(TooLong):
        plan(asked("ab"), limit=2)  # prefix and end take up both


def test_a_given_beginning_is_for_the_first_segment(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("42\nOne. Two.", target_prefixes=("Eins",)))
    assert [segment.output_prefix_ids for segment in planned.segments] == [tuple(LETTERS.encode("Eins")), ()]


def test_the_first_reason_that_is_no_stop_is_the_texts(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("One. Two. Three."))
    reasons = (FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION)
    given = [(Hypothesis("x", -1.0, 2, reason),) for reason in reasons]
    translation = assemble(planned, given, AnswerSize(10_000_000), with_alignment=False)
    assert translation.finish_reason is FinishReason.LENGTH
    assert [segment.finish_reason for segment in translation.segments] == list(reasons)


def test_candidates_of_a_rank_belong_together(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("One. Two."))
    first = (Hypothesis("a", -1.0, 1), Hypothesis("b", -2.0, 1))
    second = (Hypothesis("c", -3.0, 3),)
    hypotheses = assemble(planned, [first, second], AnswerSize(10_000_000), with_alignment=False).hypotheses
    assert [(each.text, each.score, each.num_tokens) for each in hypotheses] == [("a c", -2.5, 4), ("b c", -2.75, 4)]


@given(DOCUMENTS, st.randoms(use_true_random=False), st.booleans())
def test_deltas_are_the_translation(plan: Callable[..., PlannedText], text: str, chance: Any, formatting: bool) -> None:
    """Segments grow and settle in any order."""
    planned = plan(asked(text, preserve_formatting=formatting))
    given_ = candidates(planned, str.upper, formatting)
    translation = assemble(planned, given_, AnswerSize(10_000_000), with_alignment=False)
    stream = TextStream(planned, LETTERS, preserves_formatting=formatting)
    grown = [0] * len(given_)
    open_ = [number for number, segment in enumerate(planned.segments)]
    segments = list(planned.segments)
    told = ""
    while open_:
        number = chance.choice(open_)
        ids = LETTERS.encode(segments[number].fed.upper()) if segments[number].source_ids else []
        if grown[number] < len(ids) and chance.random() < 0.9:
            grown[number] += chance.randrange(1, 8)
            told += stream.feed(number, ids[: grown[number]])
        else:
            told += stream.settle(number, given_[number][0].text)
            open_.remove(number)
        assert translation.text.startswith(told)
    assert told + stream.finish(translation) == translation.text


def test_what_a_model_can_not_read_is_carried_over(plan: Callable[..., PlannedText]) -> None:
    text = "I like 漢字 very much. Price: £5.20, 5€! I love 🍕 and 👩‍👩‍👧. The café is open; [Save] now."
    planned = plan(asked(text), tokenizer=POOR)
    fed = [segment.fed for segment in planned.segments]
    a, b = SYMBOLS[:2]
    assert fed[:3] == [f"I like {a} very much.", f"Price: {a}, {b}!", f"I love {a} and {b}."]
    assert fed[3:] == [f"The {a} is open;", "Save", "now."]
    translation = translated(planned, str.upper, POOR)
    assert (
        translation.text
        == "I LIKE 漢字 VERY MUCH. PRICE: £5.20, 5€! I LOVE 🍕 AND 👩‍👩‍👧. THE café IS OPEN; [SAVE] NOW."
    )
    assert not any(segment.flags for segment in translation.segments)


def test_signs_within_words_are_read_apart_and_written_as_they_were(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("Press ⟦Save⟧ for pizza🍕now"), tokenizer=POOR)
    a, b, c = SYMBOLS[:3]
    assert [segment.fed for segment in planned.segments] == [f"Press {a} Save {b} for pizza {c} now"]
    assert translated(planned, str.upper, POOR).text == "PRESS ⟦SAVE⟧ FOR PIZZA🍕NOW"


def test_typographic_marks_are_read_as_plain_ones(plan: Callable[..., PlannedText]) -> None:
    planned = plan(asked("Don’t say “no” — it’s 漢"), tokenizer=POOR)
    assert [segment.fed for segment in planned.segments] == [f"Don't say \"no\" - it's {SYMBOLS[0]}"]
    assert not any(segment.spans for segment in plan(asked("Don’t say “no”."), tokenizer=POOR).segments)
    kept = plan(asked("Don’t say “no”."))
    assert [segment.fed for segment in kept.segments] == ["Don’t say “no”."], "this model knows them"


def test_what_a_model_loses_of_them_is_put_back_and_flagged(plan: Callable[..., PlannedText]) -> None:
    for symbols in (SYMBOLS, ()):
        planned = plan(asked("I like 漢字 very"), symbols=symbols, tokenizer=POOR)
        translation = translated(planned, lambda text: "Ich mag sehr", POOR)
        assert translation.text.count("漢字") == 1
        assert translation.segments[0].flags == (Flag.UNKNOWN,)


def test_a_translation_without_a_word_is_flagged(plan: Callable[..., PlannedText]) -> None:
    for text, written, flags in (
        ("Hello there", "", (Flag.EMPTY,)),
        ("Hello there", " ,. ", (Flag.EMPTY,)),
        ("Hello there", "3", ()),
        ("Hello {{name}} there", f"{SYMBOLS[0]}", (Flag.EMPTY,)),
        ("Hello {{name}} there", "", (Flag.PLACEHOLDER, Flag.EMPTY)),
        ("Hello {{name}} there", f"Hallo {SYMBOLS[0]}", ()),
    ):
        (segment,) = translated(plan(asked(text)), _always(written)).segments
        assert segment.flags == flags
    assert not translated(plan(asked("{{name}}"))).segments[0].flags, "the model has no part in it"


def _always(written: str) -> Callable[[str], str]:
    return lambda _: written


def test_a_long_text_of_unknown_characters_comes_back_whole(plan: Callable[..., PlannedText]) -> None:
    for text in ("漢" * 30_000, "漢 字 " * 5_000, "漢字。" * 5_000):
        planned = plan(asked(text), limit=128, tokenizer=POOR)
        assert not any(segment.source_ids for segment in planned.segments)
        assert translated(planned, tokenizer=POOR).text == text
    mixed = "漢 a " * 5_000
    planned = plan(asked(mixed), limit=128, tokenizer=POOR)
    assert all(len(segment.source_ids) <= 128 for segment in planned.segments)
    assert translated(planned, tokenizer=POOR).text.count("漢") == 5_000
    inner = "one " * 40 + "漢 " * 200 + "two " * 40
    assert translated(plan(asked(inner), limit=128, tokenizer=POOR), tokenizer=POOR).text == inner


KNOWN = ("word", "Word.", "and", "5", "3.50", ",", "(", ")", "don't", "{{x}}", "%s", "A. ", "\n", "ä")
UNREADABLE = (
    "漢字",
    "£",
    "€",
    "🍕",
    "👩‍👩‍👧",
    "👍🏽",
    "🇩🇪",
    "é",
    "e\u0301",
    "Привет",
    "नमस्ते",
    "§",
    "\ufffd",
    "½",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
)
MIXED = st.lists(st.tuples(st.sampled_from(KNOWN + UNREADABLE), st.sampled_from(("", " ", " ", " "))), max_size=25).map(
    lambda parts: "".join(text + space for text, space in parts)
)


@given(MIXED, st.sampled_from(SplitSentences), st.sampled_from([(), SYMBOLS]), st.sampled_from([30, 10_000]), st.data())
def test_every_unknown_character_comes_out_or_is_flagged(
    plan: Callable[..., PlannedText],
    text: str,
    split: SplitSentences,
    symbols: tuple[str, ...],
    limit: int,
    data: st.DataObject,
) -> None:
    planned = plan(asked(text, split_sentences=split), limit, symbols, POOR)
    loses = data.draw(st.booleans())

    def write(fed: str) -> str:
        words = fed.upper().split(" ")
        return " ".join(data.draw(st.lists(st.sampled_from(words)))) if loses else fed.upper()

    translation = translated(planned, write, POOR)
    for unknown in {letter for letter in text if not is_known(letter)}:
        assert translation.text.count(unknown) == text.count(unknown), "none is lost and none is more"
    for planned_segment, segment in zip(planned.segments, translation.segments, strict=True):
        source = text[segment.source_start : segment.source_end]
        target = translation.text[segment.target_start : segment.target_end]
        for span in planned_segment.spans:
            assert span.target in target
        if all(map(is_known, source)):
            assert Flag.UNKNOWN not in segment.flags
    if symbols and not loses and all(len(segment.spans) <= len(symbols) for segment in planned.segments):
        assert not any(segment.flags for segment in translation.segments), "the model kept everything in its place"


@given(DOCUMENTS, *HOW)
def test_what_a_model_knows_is_planned_as_if_it_knew_everything(
    plan: Callable[..., PlannedText], text: str, split: SplitSentences, symbols: tuple[str, ...], limit: int
) -> None:
    known = "".join(filter(is_known, text))
    request = asked(known, split_sentences=split)
    poor, rich = (list(plan(request, limit, symbols, tokenizer).segments) for tokenizer in (POOR, LETTERS))
    assert [_told(segment) for segment in poor] == [_told(segment) for segment in rich]


def _told(segment: PlannedSegment) -> tuple[Any, ...]:
    return segment.start, segment.text, segment.fed, segment.source_ids, segment.spans
