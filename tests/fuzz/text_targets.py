"""Targets: processing of a caller's text before and after the model."""

import html
from collections.abc import Sequence

from service.domain.errors import ServiceError
from service.domain.translation import (
    AlignedSpan,
    FinishReason,
    Hypothesis,
    MimeType,
    SplitSentences,
    Term,
    TranslationRequest,
)
from service.engine.sequence import DecodedHypothesis
from service.text.detection import UNDETERMINED, language_detector, source_detector
from service.text.formatting import preserve_formatting
from service.text.languages import ServedLanguages, canonical, folded, is_well_formed, language_of, script_of
from service.text.long_segments import split_long
from service.text.markup import BlockTranslation, parse
from service.text.markup.lexer import Token, TokenKind, tokens
from service.text.markup.structure import parts
from service.text.normalization import has_invisible, normalized, visible
from service.text.placeholders import find_placeholders, search_placeholders
from service.text.protected import find_protected
from service.text.protection import protect, replace_aligned
from service.text.sentences import pieces
from service.text.target_writing import Restored
from service.text.terms import TermIndex, find_terms
from service.text.tokenizers import clean_up_spaces, settled
from service.text.words import is_word_boundary, words
from service.translation.assembling import assemble
from service.translation.checks import AnswerSize
from service.translation.planning import Planner
from service.translation.restoring import Restorer
from tests.fuzz.models import MANIFEST, TOKENIZERS
from tests.fuzz.properties import are_apart, covers
from tests.fuzz.source import Source

_LANGUAGES = ("en", "de", "zh-Hant", "ja", "hi", "xx", "sr_Latn")
_CODES = ("en", "eng_Latn", "zh", "zho_Hant", "cmn", "pt-BR", "pt", "sr", "sr-Latn", "no", "nb", "he", "hbo", "x-own")
_NO_TEMPLATES = str.maketrans("", "", "{}[]()%?!")  # which a translation could begin and a tag then be part of
_MAX_SEGMENTS, _MAX_ANSWER = 4096, 2**24
_SYMBOLS = tuple(map(chr, range(0xE000, 0xE010)))


def markup(data: bytes) -> None:
    """Check HTML: tokens cover it, texts round-trip byte for byte, and tags are kept, whatever the translation."""
    source = Source(data)
    alignment = _any_alignment(source)
    num_words = source.number()
    html = source.text()
    found = list(tokens(html))
    assert covers([(token.start, token.end) for token in found], len(html))
    assert covers([(part.start, part.end) for part in parts(html, found)], len(html))
    document = parse(html)
    for block in document.blocks:
        assert block.text.strip(" ") == block.text != "" and "  " not in block.text
        assert are_apart(block.protected, len(block.text))
    assert document.render([BlockTranslation(block.text) for block in document.blocks]) == html
    backwards = [block.text.translate(_NO_TEMPLATES).split()[::-1][: num_words or None] for block in document.blocks]
    translations = [BlockTranslation("& ".join(f"<{word}>" for word in words), alignment) for words in backwards]
    rendered = document.render(translations)
    tags, rendered_tags = _tags(html, found), _tags(rendered, list(tokens(rendered)))
    if any(block.protected for block in document.blocks):  # these take their tags along
        tags, rendered_tags = sorted(tags), sorted(rendered_tags)
    assert tags == rendered_tags, rendered


def _tags(html: str, found: list[Token]) -> list[str]:
    return [html[token.start : token.end] for token in found if token.kind in (TokenKind.START, TokenKind.END)]


def sentences(data: bytes) -> None:
    """Check that pieces make up the text; segments have a letter and no outer white space; nothing protected is cut."""
    source = Source(data)
    language, mode = source.pick(_LANGUAGES), source.pick(list(SplitSentences))
    text = source.text()
    whole = find_placeholders(text)
    found = list(pieces(text, language, mode, whole))
    assert "".join(piece.text for piece in found) == text
    end = 0
    for piece in found:
        end += len(piece.text)
        assert piece.text
        assert not any(span.start < end < span.end for span in whole)
        if piece.is_segment:
            assert piece.text.strip() == piece.text and any(map(str.isalpha, piece.text))
    if mode is SplitSentences.OFF and "\t" not in text:
        assert sum(piece.is_segment for piece in found) <= 1


def long_segments(data: bytes) -> None:
    """Check that pieces make up the text, none with more tokens than allowed, unless a single character has more."""
    source = Source(data)
    limit = 1 + source.number() % 64
    tokenizer = TOKENIZERS[source.pick(list(TOKENIZERS))]
    text = source.text()

    def num_tokens(part: str) -> int:
        return len(tokenizer().encode(part))

    try:
        pieces = split_long(text, num_tokens, limit, find_placeholders(text))
    except ValueError:
        assert any(num_tokens(character) > limit for character in text)
        return
    assert "".join(pieces) == text
    assert all(num_tokens(piece) <= limit for piece in pieces)
    assert all(pieces) or not text


def placeholders(data: bytes) -> None:
    """Check that placeholders are ordered and disjoint, none empty, and none in a sentence across lines."""
    text = Source(data).text()
    found = search_placeholders(text)
    assert are_apart([(start, end) for start, end, _ in found], len(text))
    assert all(each.start < each.end for each in found)
    assert all(is_apart or len(text[start:end].splitlines()) == 1 for start, end, is_apart in found)


def terms(data: bytes) -> None:
    """Check that terms are found at word boundaries, in the text's or another case; ordered and disjoint."""
    source = Source(data)
    given = _any_terms(source)
    text = source.text()
    found = find_terms(text, TermIndex(given))
    assert are_apart([(each.start, each.end) for each in found], len(text))
    lengths = {len(normalized(visible(term.source).text)[0]) for term in given}
    for each in found:
        here = text[each.start : each.end]
        assert is_word_boundary(text, each.start) and is_word_boundary(text, each.end)
        assert len(normalized(here)[0]) in lengths
    assert not found or given


def protection(data: bytes) -> None:
    """Check that protected parts appear in the translation, whatever the model does with the symbols."""
    source = Source(data)
    given, alignment = _any_terms(source), _any_alignment(source)
    translated = source.line()
    text = source.text()
    spans = find_protected(text, TermIndex(given))
    assert are_apart([(span.start, span.end) for span in spans], len(text))
    expected, done = "", 0
    for span in spans:
        expected += text[done : span.start] + span.target
        done = span.end
    expected += text[done:]
    protected = protect(text, spans, _SYMBOLS)
    if protected is not None:
        assert all(symbol in protected.text for symbol in _SYMBOLS[: len(spans)])
        same = protected.restore(protected.text)
        assert not same.flags
        assert _squeezed(same.text) == _squeezed(expected)
        for written in (translated, protected.text[::-1]):
            links = _within(alignment, protected.text, written)
            _check(protected.restore(written, links), links)
    for written in (translated, text[::-1]):
        links = _within(alignment, text, written)
        _check(replace_aligned(text, spans, written, links), links)


def _within(alignment: Sequence[AlignedSpan], text: str, written: str) -> list[AlignedSpan]:
    return [part for part in alignment if part.source_end <= len(text) and part.target_end <= len(written)]


def _check(restored: Restored, alignment: Sequence[AlignedSpan]) -> None:
    for span, place in zip(restored.spans, restored.places, strict=True):
        assert restored.text[place.start : place.end] == span.target
    for part in restored.alignment(alignment):
        assert 0 <= part.target_start <= part.target_end <= len(restored.text)


def words_of(data: bytes) -> None:
    """Check that words are in order and cover all but white space; formatting and cleaning change only their own."""
    source = Source(data)
    other = source.line()
    text = source.text()
    found = words(text, [(i, i + 1) for i in range(0, len(text), 3)])
    assert are_apart(found, len(text))
    assert "".join(text[start:end] for start, end in found) == "".join(text.split())
    assert preserve_formatting(text, text) == text
    formatted = preserve_formatting(other, text)
    assert len(formatted) <= len(text) + len(other) + 2
    assert clean_up_spaces(text).replace(" ", "") == text.replace(" ", "")
    for end in range(0, len(text), 7):
        assert clean_up_spaces(text).startswith(clean_up_spaces(settled(text[:end])))


def detection(data: bytes) -> None:
    """Check that the best language comes first, that confidences sum to 1, and that a text on the way into a language
    is in one.
    """
    source = Source(data)
    served = source.pick((("en", "de"), _CODES, ("zh-Hans", "zh-Hant", "ja"), ()))
    text = source.text()
    found = language_detector(served).detect(text)
    confidences = [each.confidence for each in found]
    assert found and confidences == sorted(confidences, reverse=True)
    if found[0].language_code == UNDETERMINED:
        assert len(found) == 1 and confidences == [0.0]
    else:
        assert 0.8 < sum(confidences) < 1.000001
    sources = served or _CODES
    code = source_detector(sources, source.pick(("en", "zh-TW", "xx"))).detect(text)
    assert code in sources or is_well_formed(code)


def languages(data: bytes) -> None:
    """Check that canonical spelling is idempotent, and that what is found for a code is served."""
    source = Source(data)
    served = ServedLanguages(_CODES)
    for code in (source.line(), source.text()):
        is_well_formed(code)
        assert folded(folded(code)) == folded(code)
        spelled = canonical(code)
        assert canonical(spelled) == spelled
        assert language_of(spelled) == language_of(code)
        assert script_of(code) == script_of(spelled)
        found = served.find(code)
        assert [each.distance for each in found] == sorted(each.distance for each in found)
        assert {each.code for each in found} <= set(_CODES)
        assert len(set(found)) == len(found)
        assert served.nearest(code) in (None, *_CODES)


def documents(data: bytes) -> None:
    """Check that segments fit into the model and are ordered; if nothing is translated, what a reader sees of the text
    is returned."""
    source = Source(data)
    mime_type, mode = source.pick(list(MimeType)), source.pick(list(SplitSentences))
    name = source.pick(list(TOKENIZERS))
    given = _any_terms(source)
    text = source.text()
    request = TranslationRequest(
        texts=(text,),
        source_language_code="en",
        target_language_code="de",
        mime_type=mime_type,
        split_sentences=mode,
        deadline_seconds=0.0,
        return_alignments=True,
    )
    tokenizer, pair = TOKENIZERS[name](), MANIFEST.first_pair
    planner = Planner(request, MANIFEST, pair, tokenizer, _MAX_SEGMENTS, AnswerSize(_MAX_ANSWER), [TermIndex(given)])
    try:
        planned = planner.plan(0)
    except ServiceError:
        return
    for passage in planned.passages:
        assert are_apart([(segment.start, segment.end) for segment in passage.segments], len(passage.text))
        for segment in passage.segments:
            assert passage.text[segment.start : segment.end] == segment.text
            assert len(segment.source_ids) <= MANIFEST.limits.max_source_tokens
            assert are_apart([(span.start, span.end) for span in segment.spans], len(segment.text))
    same = [(Hypothesis(segment.text),) for segment in planned.segments]
    translated = assemble(planned, same, AnswerSize(_MAX_ANSWER), with_alignment=True).text
    if not has_invisible(html.unescape(text)):
        assert translated == text
    elif mime_type is not MimeType.HTML:
        assert visible(translated).text == visible(text).text
    # A model that repeats made-up ids, and no aligner.
    ids = tuple(range(3, 3 + len(text) % 50))
    restorer = Restorer(tokenizer, None, pair, preserves_formatting=bool(len(text) % 2), returns_scores=False)
    segments = dict(enumerate(planned.segments))
    decoded = {
        number: [DecodedHypothesis(ids, 0.0, FinishReason.STOP)] if segment.source_ids else []
        for number, segment in segments.items()
    }
    restored = restorer.restore(segments, decoded, AnswerSize(_MAX_ANSWER))
    assemble(planned, list(restored.values()), AnswerSize(_MAX_ANSWER), with_alignment=True)


def _any_terms(source: Source) -> list[Term]:
    return [
        Term(line[:100], source.pick((None, "", "Ziel", "%s", line[1:100], "ß")), bool(source.number() % 2))
        for line in (source.line() for _ in range(source.number() % 4))
        if line.strip()
    ]


def _any_alignment(source: Source) -> tuple[AlignedSpan, ...]:
    spans = []
    for _ in range(source.number() % 6):
        a, b, c, d = (source.number() % 64 for _ in range(4))
        spans.append(AlignedSpan(min(a, b), max(a, b), min(c, d), max(c, d)))
    return tuple(spans)


def _squeezed(text: str) -> str:
    return "".join(text.split())
