"""A translator that reverses the order of words, and knows where each of them went."""

import re

from service.domain.translation import AlignedSpan
from service.text.markup import Block, BlockTranslation, parse


def backwards(block: Block) -> BlockTranslation:
    """Return the words of a block in reverse order; signs at the end of the text stay there."""
    end = len(block.text.rstrip(".!?"))
    spans: list[tuple[int, int]] = []
    done = 0
    for start, stop in (*block.protected, (end, end)):
        spans += (match.span() for match in re.compile(r"[^\s.,!?]+|[.,!?]").finditer(block.text, done, start))
        spans += [(start, stop)] * (start < stop)
        done = stop
    text, links = "", []
    for start, stop in reversed(spans):
        text += " " * bool(text)
        links.append(AlignedSpan(start, stop, len(text), len(text) + stop - start))
        text += block.text[start:stop]
    links += [AlignedSpan(end, len(block.text), len(text), len(text) + len(block.text) - end)]
    return BlockTranslation(text + block.text[end:], tuple(links))


def turned(html: str) -> str:
    """Return HTML with the words of each text in reverse order."""
    document = parse(html)
    return document.render([backwards(block) for block in document.blocks])


def texts(html: str) -> list[str]:
    """Return the texts of HTML."""
    return [block.text for block in parse(html).blocks]
