"""Elements whose text is a sign: arrows, bullets, anchors, numbers of notes and of headings, and spaces.

As words of a sentence they would be lost, or put around other words: `<a>¶</a>`, `<span>•</span>`, `<a>1</a>` of an
EPUB's note. So each stays, with its tags: at a word, or where a text begins or ends, as a mark, which the model never
sees; between words as kept text, like code. Bars and bullets between texts separate them.
"""

import functools
import re
from collections.abc import Callable, Sequence

from service.domain.checkpoint import checkpoint
from service.text.markup.parts import Part, Role, Texts, partners
from service.text.markup.raised import short_text
from service.text.words import is_mark

_NEARBY = 8  # parts whose text may touch a sign
_NOTHING = re.compile(r"[\s\xad\u200b\u2060\ufeff]+")  # that a reader sees
# Sentences have these, too: text of nothing else is read with them. An ellipsis may be a link.
_PUNCTUATION = re.compile(r"(?!\.{3})[.,;:!?¡¿'\"‘’‚“”„()\[\]{}@%‰$€£¥₹¢、。，！？；：（）「」『』।॥،؛؟۔]+")
_SEPARATOR = re.compile(r"[|¦·•‣∙◦●▪■]+")
_BEGINS_NAMES = frozenset("#/~_")  # of tags and files
_OPENS = re.compile(r"[(\[{]\Z")
_CLOSES = frozenset(")]}")
_SENTENCE_END = re.compile(r"[.!?:;…]\s+\Z")
_NUMBERING = re.compile(r"[(\[§]?(?:\d{1,4}|[A-Za-z]|[ivx]{2,6}|[IVX]{2,6})(?:\.\d{1,4})*[.)\]]{0,2}")
_OF_HEADING = re.compile(r"sec\w*-?n(?:um|o\b)|chap\w*-?num|titlemark|ltx_tag_", re.IGNORECASE)  # classes
_RAISED = re.compile("<su[bp]", re.IGNORECASE)
_NOTE = re.compile(r"[(\[]?(?:\d{1,4}|[a-z]|[ivx]{2,6})[)\]]?")
_BACK_TO_NOTE = re.compile(r"[↩↵↑⬆⤴^][\ufe0e\ufe0f]?\d{1,2}")
_TO_NOTE = re.compile(r"(?:foot|end|[\"'#_-])note|doc-backlink|[\"'#_-](?:f|ft|ed)n", re.IGNORECASE)  # any attribute
_TO_ID = re.compile(r"<a\s[^<>]*?\bhref\s*=\s*[\"']?[^\"'\s<>]*#", re.IGNORECASE)
_AFTER_SENTENCE = re.compile(r"(?<!\d)[.!?…”\"»]\Z")
_AT_WORD = re.compile(r"(?:[^\W_]|[.;!?…)\]}\"'”’»]|(?<!\d)[,:])\Z")


def with_signs(html: str, run: Sequence[Part]) -> Sequence[Part]:
    """Return the parts of a text, in which each element that is a sign is one part."""
    if not any(part.role is Role.OPEN for part in run):
        return run
    ends = partners(run)
    texts = functools.cache(lambda: Texts(html, run))
    result: list[Part] = []
    index = 0
    while index < len(run):
        checkpoint()
        last = ends.get(index, index) if run[index].role is Role.OPEN else index
        role = _role(html, run, index, last, texts) if index < last else None
        if role is not None:
            result.append(Part(role, run[index].start, run[last].end))
        elif _RAISED.match(html, run[index].start):
            result += run[index : last + 1]
        else:
            result.append(run[index])
            last = index
        index = last + 1
    return result


def _role(html: str, run: Sequence[Part], start: int, last: int, texts: Callable[[], Texts]) -> Role | None:
    """Return the role of the element from a part to another one, if it is a sign."""
    text = short_text(html, run[start:last])
    sign, element = text.strip(), html[run[start].start : run[last].start]
    if _NOTHING.fullmatch(text):
        return Role.KEPT if len(sign) < len(text) else Role.MARK
    if not sign or not _may_be_sign(sign, element):
        return None
    before = texts().of(max(0, start - _NEARBY), start)
    after = texts().of(last + 1, min(last + 1 + _NEARBY, len(run)))[:1]
    is_first, is_last = not texts().have_words(0, start), not texts().have_words(last + 1, len(run))
    if _is_numbering(sign, element) and (is_first or _SENTENCE_END.search(before)):
        return Role.MARK if is_first else Role.KEPT
    is_note = _is_note(sign, element, before)
    if not is_note and (not _is_sign(sign) or _begins_name(sign, before, after)):
        return None
    if (is_first and not _OPENS.search(before)) or (is_last and after not in _CLOSES):
        return Role.MARK
    return _role_between(text, before, after, is_note=is_note)


def _role_between(text: str, before: str, after: str, *, is_note: bool) -> Role:
    """Return the role of a sign, given with white space in its element, between two characters with words beyond."""
    is_behind, is_ahead = before[-1:].strip() != "", after.isalnum()
    if _SEPARATOR.fullmatch(text.strip()):
        return Role.LINE_BREAK
    if (is_behind and text[:1].isspace()) or (is_ahead and text[-1:].isspace()) or _OPENS.search(before):
        return Role.KEPT  # a mark has no white space
    return Role.MARK if is_behind != is_ahead or (is_behind and is_note) else Role.KEPT


def _may_be_sign(text: str, html: str) -> bool:
    """Return whether the text of an element is a sign in some place; what is raised is left to `raised`."""
    if _RAISED.search(html):
        return _BACK_TO_NOTE.fullmatch(text) is not None
    return _is_sign(text) or _NOTE.fullmatch(text) is not None or _NUMBERING.fullmatch(text) is not None


def _is_sign(text: str) -> bool:
    """Return whether a text is neither words nor the punctuation of a sentence."""
    if any(map(str.isspace, text)) or is_mark(text[0]) or _PUNCTUATION.fullmatch(text):
        return False
    return not any(map(str.isalnum, text)) or _BACK_TO_NOTE.fullmatch(text) is not None


def _begins_name(text: str, before: str, after: str) -> bool:
    return text in _BEGINS_NAMES and after.isalnum() and not before[-1:].isalnum()


def _is_numbering(text: str, html: str) -> bool:
    is_complete = "." in text or text[-1] in _CLOSES or _OF_HEADING.search(html) is not None
    return is_complete and _NUMBERING.fullmatch(text) is not None


def _is_note(text: str, html: str, before: str) -> bool:
    """Return whether an element refers to a note, as its tag says, or its number behind a word or sentence."""
    if not _NOTE.fullmatch(text):
        return False
    if not text.isdecimal() or not _AT_WORD.search(before):
        return _TO_NOTE.search(html) is not None
    return any((_AFTER_SENTENCE.search(before), _TO_NOTE.search(html), _TO_ID.match(html)))
