"""Extraction of the texts of an HTML document, and rendering of the document with their translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from service.domain.checkpoint import paced
from service.text.markup.block import Block, BlockTranslation
from service.text.markup.block_reading import read_block
from service.text.markup.block_writing import merged
from service.text.markup.lexer import tokens
from service.text.markup.parts import Part, Role
from service.text.markup.structure import parts


@dataclass(frozen=True, slots=True)
class HtmlDocument:
    """A document and its `blocks`, in order."""

    blocks: tuple[Block, ...]
    html: str = field(repr=False, compare=False)

    def render(self, translations: Sequence[BlockTranslation]) -> str:
        """Return the document with `translations`, one for each block, in place of their texts.

        Everything else is unchanged, and a browser builds the same tree of elements, as long as no translation is
        empty. The exception are elements with protected text, which are placed where that text is: where a link of the
        alignment from exactly that text leads, else where the translation contains it; those that it lacks come after
        it. A block whose translation equals its text is unchanged byte for byte. Other translations are escaped and
        otherwise unchanged; if alignments are wrong, tags are at the wrong words.

        Raises:
            ValueError: there are more or fewer translations than blocks.
        """
        output: list[str] = []
        done = 0
        for block, translation in paced(zip(self.blocks, translations, strict=True), every=16):
            if translation.text == block.text:
                continue
            output += (self.html[done : block._start], block._before)
            output += merged(self.html, block, translation)
            output.append(block._after)
            done = block._end
        output.append(self.html[done:])
        return "".join(output)


def parse(html: str) -> HtmlDocument:
    """Find the texts in `html`, a document or a fragment, however malformed it is."""
    return HtmlDocument(tuple(blocks(html)), html)


def blocks(html: str) -> Iterator[Block]:
    """Yield the blocks of `html` lazily."""
    run: list[Part] = []
    for part in paced(parts(html, list(paced(tokens(html))))):
        if part.role in (Role.BOUNDARY, Role.LINE_BREAK):
            yield from read_block(html, run)
            run = []
        else:
            run.append(part)
    yield from read_block(html, run)
