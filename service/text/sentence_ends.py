"""Ends of the sentences of a line: after the marks of their script, but not after abbreviations and in quotations."""

import re
import unicodedata
from collections.abc import Iterator

from service.domain.checkpoint import paced
from service.text.abbreviations import Abbreviations, abbreviations, is_lower, open_words
from service.text.spans import inside

# Unicode's Sentence_Terminal (PropList.txt), in two kinds: marks that end a sentence if white space follows, and those
# of scripts that need none. U+104A of Myanmar and U+0700 of Syriac end clauses.
_SPACED = ".!?…‽⁇⁈⁉⸮\u037e"
_WIDE = "。｡！？．؟؝؞۔।॥։።፧፨။។៕།༎༏༐܁܂߹࠷࠹࠽࠾᙮᜵᜶᠃᠉᥄᥅᪨-᪫᭚᭛᭞᭟᰻᰼᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝-꩟꫰꫱꯫"
_CLOSING = "\"'”’»›)\\]}」』）】〉》〕］"
_OPENING = "\"'“„‚‘«‹»›(\\[{¿¡「『（【〈《〔［"

# Each run of marks is one match, whatever follows it, so that none is read twice. It begins with a set, which `re`
# finds fast. "។ល។" is Khmer for "etc."; U+201C and U+2018 close quotations in German, and open them in Chinese.
_END = r"""
([{marks}](?!(?<=។)[លប]។)(?:(?<=[{wide}])[{marks}{closing}]*+|[{marks}{closing}“‘]*+)
(?:\[\d{{1,3}}\]|[¹²³⁰⁴-⁹])*+                                            # signs of notes
(?:[ \u00a0\u202f](?:[»›](?=[\s.,;:!?]|\Z)|[།༎])[{marks}{closing}]*+)*+)  # which French sets apart, and Tibetan
(\s*+)"""


def _end(spaced: str) -> re.Pattern[str]:
    return re.compile(_END.format(wide=_WIDE, marks=spaced + _WIDE, closing=_CLOSING), re.VERBOSE)


_ENDS = _end(_SPACED)
_ENDS_IN_GREEK = _end(_SPACED + ";")  # its question mark
_WIDE_MARK = re.compile(f"[{_WIDE}]")

# A quotation or an aside that sentences are not cut within; a longer one is text like any other.
_MOST_QUOTED = 300
_PAIRS = tuple(zip("“「『«»(（《[", "”」』»«)）》]", strict=True))
_QUOTED = re.compile(
    "|".join(f"{re.escape(a)}[^{re.escape(a + b)}]{{1,{_MOST_QUOTED}}}{re.escape(b)}" for a, b in _PAIRS)
    + rf'|„[^„“”]{{1,{_MOST_QUOTED}}}[“”]|"(?<!\w")(?=\S)[^"]{{1,{_MOST_QUOTED}}}"(?<=\S")'
)

_FOLLOWING = re.compile(rf"[{_OPENING}–—-]*\s?(\w+(?:['’]\w+)*)(\.?)")
_CAPITAL_FIRST = re.compile(r"[^\W\d_]")
_BEFORE = 48  # characters before a mark in which its abbreviation is looked for: three words
_KOREAN_PARTICLES = re.compile("이?(?:라고|라는|라며|라면서|란|고|하고|하는|하며)")
_JAPANESE_PARTICLES = re.compile("[のを]|という|って|と(?=[言思聞叫問答書尋い])")


def sentence_ends(line: str, language_code: str) -> Iterator[int]:
    """Yield the ends of the sentences of a line, white space behind them included, except the last one's."""
    rules = abbreviations(language_code)
    pattern = _ENDS_IN_GREEK if rules.language == "el" else _ENDS
    is_quoted = None
    start = 0
    for found in paced(pattern.finditer(line)):
        end = found.end()
        if end == len(line):
            return
        if (_continues if found[2] else _continues_at_once)(line, start, found, rules):
            continue
        if is_quoted is None:
            is_quoted = inside([each.span() for each in _QUOTED.finditer(line)])
        if not is_quoted(end):
            yield end
            start = end


def _continues(line: str, start: int, found: re.Match[str], rules: Abbreviations) -> bool:
    """Return whether the sentence that begins at `start` goes on after a mark and white space."""
    marks, end = found[1], found.end()
    if marks[0] not in _SPACED + ";":
        return _is_quotation_of(line, found, rules)
    sign = line[end]
    before = line[max(start, found.start() - _BEFORE) : found.start()]
    if len(marks) == 1 and sign.isupper() and rules.is_word(before, marks):
        return False  # as nearly always
    if sign in ",;:)]}…" or (sign in ".!?" and not line[end + 1 : end + 2].isalnum()):
        return True
    match = _FOLLOWING.match(line, end)
    following = match[1] if match else ""
    if match and match[2] and len(following) == 1:
        following += "."  # an initial
    if len(marks) == 1:
        verdict = rules.continues(before, marks, following)
        if verdict is not None:
            return verdict
    if not is_lower(following):
        return _is_quotation_of(line, found, rules)
    is_ellipsis = marks != "." and not marks.strip(".…")
    if is_ellipsis or not all(mark in _SPACED for mark in marks):  # or a quotation: "Go!" he said.
        return True
    first = _CAPITAL_FIRST.search(line, start, found.start())
    if first and is_lower(first[0]):
        return False  # written without capitals
    rest, _, word = before.rpartition(" ")
    if marks == ".":
        is_abbreviation = len(word) < 4 and not rules.starts_sentence(word)
        return is_abbreviation or not rules.starts_sentence(following) or following in open_words()
    return bool(rest) and word[:1].isupper()  # a title, such as Jeopardy!


def _is_quotation_of(line: str, found: re.Match[str], rules: Abbreviations) -> bool:
    """Return whether a quotation ends that belongs to a Korean verb behind it."""
    is_closed = found[1][-1] in _CLOSING
    return is_closed and rules.language == "ko" and _KOREAN_PARTICLES.match(line, found.end()) is not None


def _continues_at_once(line: str, _: int, found: re.Match[str], rules: Abbreviations) -> bool:
    """Return whether a sentence goes on after a mark without white space behind it."""
    marks, at = found[1], found.end()
    sign = line[at]
    if marks[-1] not in _SPACED and not _WIDE_MARK.match(marks[-1]):  # a closing sign or a note's
        if not _WIDE_MARK.search(marks) or sign in _OPENING:
            return sign not in "「『“‘«„" or not _WIDE_MARK.search(marks)
        is_apart = (
            rules.language == "ja" and marks[-1] not in "）)" and sign.isalpha() and not "\u3040" <= sign <= "\u309f"
        )
        return not is_apart  # Hiragana are particles of the sentence around a quotation
    if marks[0] in _SPACED:  # as in "你好!再见"
        return marks[0] not in "!?" or not (_is_chinese(line[found.start() - 1 : found.start()]) and _is_chinese(sign))
    if marks == "．" and sign.isdigit():
        return True
    if marks[-1] in "！？" and rules.language == "ja" and _JAPANESE_PARTICLES.match(line, at):
        return True
    return sign not in _OPENING and unicodedata.category(sign).startswith("P")


def _is_chinese(sign: str) -> bool:
    return "\u3040" <= sign <= "\u30ff" or "\u3400" <= sign <= "\u9fff"
