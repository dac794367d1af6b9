"""An HTML document as the texts that stand in it, and the document again with their translations."""

import html as html_standard
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from service.checkpoint import paced
from service.text.markup.lexer import tokens
from service.text.markup.placement import Node, count_needs, insertions
from service.text.markup.structure import Part, Role, parts
from service.text.spans import Span
from service.translation import AlignedSpan

_SPACES = re.compile(r"[\t\n\f\r ]+")
_LONG_NUMBER = re.compile(r"&#0*[0-9]{8,}")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;"})


@dataclass(frozen=True, slots=True)
class BlockTranslation:
    """What became of a block's text; `alignment` goes from the block's text to the translation and may be empty."""

    text: str
    alignment: tuple[AlignedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A text between block-level tags, as a reader sees it: without tags, decoded, white space collapsed, trimmed.

    `protected` are the parts of `text` that a translation must keep as they are.
    """

    text: str
    protected: tuple[Span, ...]
    _root: Node = field(repr=False, compare=False)
    _start: int = field(repr=False, compare=False)
    _end: int = field(repr=False, compare=False)
    _before: str = field(repr=False, compare=False)
    _after: str = field(repr=False, compare=False)

    @property
    def needs_alignment(self) -> bool:
        """Whether there are tags within the text, not only around it."""
        pending = list(self._root.children)
        while pending:
            node = pending.pop()
            if 0 < node.start < len(self.text) or 0 < node.end < len(self.text):
                return True
            pending += node.children
        return False


@dataclass(frozen=True, slots=True)
class HtmlDocument:
    """A document and its `blocks`, in order."""

    blocks: tuple[Block, ...]
    html: str = field(repr=False, compare=False)

    def render(self, translations: Sequence[BlockTranslation]) -> str:
        """The document with `translations`, one for each block, in place of their texts.

        Everything else comes back as it was, and a browser builds the same tree of elements, as long as no translation
        is empty. A block whose translation is its own text comes back byte for byte. Other translations are escaped and
        else unchanged; alignments may be wrong, tags then stand at wrong words.

        Raises:
            ValueError: there are more or fewer translations than blocks.
        """
        output: list[str] = []
        done = 0
        for block, translation in paced(zip(self.blocks, translations, strict=True), every=16):
            if translation.text == block.text:
                continue
            output += (self.html[done : block._start], block._before)
            output += _merged(block, translation)
            output.append(block._after)
            done = block._end
        output.append(self.html[done:])
        return "".join(output)


def parse(html: str) -> HtmlDocument:
    """Find the texts in `html`, a document or a fragment, however broken it is."""
    return HtmlDocument(tuple(blocks(html)), html)


def blocks(html: str) -> Iterator[Block]:
    """The blocks of `html`, each found when it is asked for."""
    run: list[Part] = []
    for part in paced(parts(html, list(paced(tokens(html))))):
        if part.role in (Role.BOUNDARY, Role.LINE_BREAK):
            yield from _block(html, run)
            run = []
        else:
            run.append(part)
    yield from _block(html, run)


def _block(html: str, run: Sequence[Part]) -> Iterable[Block]:
    """The block that `run` is, if there is anything to translate in it."""
    if not any(part.role is Role.TEXT for part in run):
        return
    texts: list[str] = []
    before: list[str] = []
    after = ""
    length = 0
    roots: list[Node] = []
    path: list[Node] = []
    contents: list[int] = []  # where those of the elements in `path` begin
    num_protected = 0  # elements in `path`: only the outermost one's content is kept, or memory would be quadratic
    for part in paced(run):
        raw = html[part.start : part.end]
        siblings = path[-1].children if path else roots
        match part.role:
            case Role.TEXT:
                text = _decoded(raw)
                stripped = text.strip("\t\n\f\r ")
                if not stripped:
                    after += text
                elif length == 0:
                    before.append(after)
                    after = text[len(text.rstrip("\t\n\f\r ")) :]
                else:
                    after = text[len(text.rstrip("\t\n\f\r ")) :]
                if length == 0 and stripped:
                    before.append(text[: len(text) - len(text.lstrip("\t\n\f\r "))])
                text = _SPACES.sub(" ", text)
                if text.startswith(" ") and (length == 0 or texts[-1].endswith(" ")):
                    text = text[1:]
                    if length and siblings and siblings[-1].is_mark and siblings[-1].start == length:
                        siblings[-1].is_spaced = True  # the space after an image is seen beside the one before it
                if text:
                    texts.append(text)
                    length += len(text)
            case Role.OPEN:
                node = Node(length, length, raw, is_protected=part.is_protected)
                siblings.append(node)
                path.append(node)
                contents.append(part.end)
                num_protected += node.is_protected
            case Role.CLOSE if path:
                node = path.pop()
                node.end, node.closing = length, raw
                start = contents.pop()
                num_protected -= node.is_protected
                if node.is_protected and num_protected == 0:
                    node.content = html[start : part.start]
            case Role.CLOSE:  # it was opened before a line break
                roots = [Node(0, length, "", raw, children=roots)]
            case _:
                siblings.append(Node(length, length, raw, is_mark=not part.is_comment))
    for node in path:
        node.end = length
    text = "".join(texts)
    text = text.removesuffix(" ")
    if not text:
        return
    root = Node(0, len(text), children=roots)
    protected = _trim(root, text)
    count_needs(root)
    if _covers(protected, text):
        return
    yield Block(text, tuple(protected), root, run[0].start, run[-1].end, "".join(before), after)


def _decoded(raw: str) -> str:
    if "&" in raw:
        raw = html_standard.unescape(_LONG_NUMBER.sub("&#1114112", raw))  # int() refuses thousands of digits
    return raw.replace("\0", "")


def _trim(root: Node, text: str) -> list[Span]:
    """Let elements begin and end at words, not at white space; return the protected parts, outermost only."""
    protected: list[Span] = []
    pending = [(root, False)]
    while pending:
        node, is_within = pending.pop()
        node.start, node.end = min(node.start, len(text)), min(node.end, len(text))
        if node.start < node.end:
            starts_late, ends_early = text[node.start] == " ", text[node.end - 1] == " "
            node.start += starts_late
            node.end = max(node.start, node.end - ends_early)
            if starts_late or ends_early:
                node.content = ""
        if node.is_protected and not is_within and node.start < node.end:
            protected.append(Span(node.start, node.end))
            is_within = True
        pending += [(child, is_within) for child in reversed(node.children)]
    return protected


def _covers(spans: Sequence[Span], text: str) -> bool:
    """Whether nothing but white space is outside of `spans`, which are in order."""
    done = 0
    for span in spans:
        if text[done : span.start].strip():
            return False
        done = span.end
    return not text[done:].strip()


def _merged(block: Block, translation: BlockTranslation) -> Iterable[str]:
    done = 0
    for start, end, markup in insertions(block._root, block.text, translation.text, translation.alignment):
        yield translation.text[done:start].translate(_ESCAPES)
        yield markup
        done = end
    yield translation.text[done:].translate(_ESCAPES)
