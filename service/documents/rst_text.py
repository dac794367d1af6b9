"""Sentences of reStructuredText: their pieces, and translations written so that markup is recognized.

Inline markup needs white space or a sign around it, else an escaped space, and does not nest:
https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#inline-markup.
"""

import re
from collections.abc import Iterable, Iterator

from service.documents.directives import TEXT_ROLES
from service.documents.inline import InlineText, Kind, Piece
from service.documents.markdown.writing import tight

_BEFORE = r"""\s\-:/'"<(\[{«„“‘‚¿¡—–"""
_AFTER = r"""\s\-.,:;!?\\/'")\]}>’”»“…—–"""
_START, _END = rf"(?<![^{_BEFORE}])", rf"(?![^{_AFTER}])"
_MARKUP = re.compile(
    rf"""{_START}(?:
        (?P<literal>``(?!\s).{{1,1000}}?(?<!\s)``)
        |(?P<open>(?P<link>:{TEXT_ROLES}:)?`)(?P<text>(?!\s)[^`<>\\]{{1,500}}?)(?P<close>\s{{1,9}}<[^`<>]{{1,1000}}>`(?(link)|__?))
        |`(?P<name>(?!\s)[^`<>\\:]{{1,300}}(?<!\s))`(?P<anonymous>__?)(?!_)
        |(?P<role>:[\w:.+-]{{1,60}}:`(?!\s)[^`]{{1,5000}}`{{1,2}}|_?`(?!\s)[^`]{{1,500}}`{{1,2}}(?::[\w:.+-]{{1,60}}:|__?)?)
        |(?P<sign>\*\*?)(?P<emphasis>(?![\s*])(?:[^*\\]|\\.|(?<!\s)\*(?=\w)){{1,1000}}?(?<!\s))(?P=sign)
        |(?P<substitution>\|(?![\s|])[^|]{{1,200}}?(?<!\s)\|_{{0,2}})
        |(?P<note>\[(?:\#?[\w.:+-]{{0,60}}|\*)\]_)
        |(?P<reference>[^\W_](?:[\w.:+-]{{0,60}}[^\W_])?__?(?!\w)|https?://[^\s<>`]{{1,1000}}[^\s<>`.,;:!?)\]}}'"*])
    ){_END}
    |\\(?P<escaped>.)""",
    re.VERBOSE | re.DOTALL,
)
_REFERENCE = re.compile(
    r"`([^\s`<>](?:[^`<>]{0,300}[^\s`<>])?)`_|:ref:`([^`<>]{1,300})`|<([^<>`]{1,300})_>|([^\W_][\w.:+-]{0,99})_(?!\w)"
)
_SPECIAL = re.compile(r"[\\`]|\*(?!\s|\Z)|(?<!\s)\*|\|(?!\s|\Z)|(?<=[^\W_])_+(?!\w)|(?<=\])_+(?!\w)")
_BLOCK_START = re.compile(
    r"""[-+*•‣⁃|](?:\s|\Z)|\(?(?:\d+|[A-Za-z]|[ivxlcdmIVXLCDM]+|\#)[.)](?:\s|\Z)|:(?![\s:])[^`]{1,200}:(?:\s|\Z)|--?\w|/\w|>>>|\.\.(?:\s|\Z)|__(?:\s|\Z)
    |([!-/:-@[-`{-~])\1*\s*\Z|\+-[-+]+\+""",
    re.VERBOSE,
)
_IS_BEFORE, _IS_AFTER = re.compile(f"[{_BEFORE}]"), re.compile(f"[{_AFTER}]")


def pieces(source: str) -> Iterator[Piece]:
    done = 0
    for match in _MARKUP.finditer(source):
        yield Piece(Kind.TEXT, text=source[done : match.start()])
        done = match.end()
        if match["escaped"]:
            yield Piece(Kind.TEXT, text=match["escaped"].strip())
        elif text := match["text"] or match["emphasis"] or match["name"]:
            name = f" <{text}_>`__" if match["anonymous"] == "_" else f"`{match['anonymous']}"
            yield Piece(Kind.OPEN, match["open"] or match["sign"] or "`")
            yield Piece(Kind.TEXT, text=re.sub(r"\\(.)", r"\1", text))
            yield Piece(Kind.CLOSE, match["close"] or match["sign"] or name)
        else:
            kind = Kind.MARK if match["note"] else Kind.KEPT
            yield Piece(kind, match[0], re.sub(r":[\w:.+-]+:(?=`)|[`|]|_+\Z", "", match[0]))
    yield Piece(Kind.TEXT, text=source[done:])


def references(source: str) -> set[str]:
    """Return the names that anything in a source refers to, code included."""
    return {named(name) for match in _REFERENCE.finditer(source) for name in match.groups() if name}


def targets(source: str) -> Iterator[tuple[str, str]]:
    """Yield the names that links in a text give to their addresses, and these."""
    for match in _MARKUP.finditer(source):
        if match["open"] == "`" and not match["close"].endswith("__"):
            yield match["text"], match["close"].strip(" <>`_")


def named(text: str) -> str:
    return " ".join(text.split()).lower()


def written(inline: InlineText, translation: str) -> str:
    output = ""
    was_markup = is_text = False
    for piece in _flat(tight(inline.pieces(translation))):
        raw, is_start = piece.raw, piece.kind not in (Kind.TEXT, Kind.CLOSE)
        if piece.kind is Kind.TEXT:
            raw = _SPECIAL.sub(lambda match: "\\" + "\\".join(match[0]), " ".join(piece.text.splitlines()))
            is_text = is_text or not output
        is_joined = was_markup and _IS_AFTER.match(raw) is None
        if raw and (is_joined or (is_start and output and not _IS_BEFORE.match(output[-1]))):
            raw = "\\ " + raw
        was_markup = piece.kind not in (Kind.TEXT, Kind.OPEN) if raw else was_markup
        output += raw
    return "\\" + output if is_text and _BLOCK_START.match(output) else output


def _flat(every: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with kept text moved behind the pair around it, as markup does not nest; none is empty."""
    path: list[Piece] = []
    text, kept = "", list[Piece]()
    for piece in every:
        if piece.kind is Kind.OPEN:
            path.append(piece)
        elif path and piece.kind is Kind.TEXT:
            text += piece.text
        elif path and piece.kind is not Kind.CLOSE:
            kept.append(piece)
        elif len(path) > 1:
            path.pop()
        elif path:
            words = " ".join(text.split())
            if not words and path[0].raw.endswith("`"):  # a link, which shows its address then
                words = piece.raw.strip("` <>_") or "..."
            if words:
                yield from (path[0], Piece(Kind.TEXT, text=words), piece)
            yield from kept
            path, text, kept = [], "", []
        else:
            yield piece
