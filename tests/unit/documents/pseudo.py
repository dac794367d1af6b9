"""Translators that show what a real one would change: letters become capitals, tags and entities stay."""

import itertools
import random
import re
from collections.abc import Callable

from service.documents import Document, DocumentText, MimeType
from service.domain.translation import AlignedSpan
from service.text.markup import Block, BlockTranslation, parse
from service.text.placeholders import find_placeholders

_MARKUP = re.compile(r"(<[^<>]*>|&[#\w]+;)")
# What means something in some format.
_NOISE = (
    *("*", "_", "[", "]", "*x*", "[y]", "_z_", "(", "`", "#", "$", "~", "==", "{", "}", "^", "|", "!", ":", "\\"),
    *("&amp;", '"', "'", ",", ";", "=", "--", "%", "@", "?", '"q"', "it's", "\\n"),
)
_STARTS = (
    *("* ", "# ", "> ", "+ ", "- ", "$5 ", "1. ", "::: ", "!!! a ", "| ", ": ", "(a) ", "« ", '"q" ', "=== "),
    *("'", "@", "? ", "& ", "-- ", "12 ", "yes, ", "//", "NOTE "),
)


def capitals(text: DocumentText) -> str:
    if text.mime_type is MimeType.TEXT:
        return text.text.upper()
    return "".join(part if index % 2 else part.upper() for index, part in enumerate(_MARKUP.split(text.text)))


def served(text: DocumentText) -> str:
    """Return capitals as the server would: with the markup that it keeps as it is, and each tag at its word."""
    if text.mime_type is MimeType.TEXT:
        return text.text.upper()
    page = parse(text.text)
    return page.render([_with_capitals(block) for block in page.blocks])


def _with_capitals(block: Block) -> BlockTranslation:
    kept = {*block.protected, *find_placeholders(block.text)}
    borders = sorted({0, len(block.text), *itertools.chain(*kept)})
    output: list[str] = []
    links: list[AlignedSpan] = []
    length = 0
    for start, end in itertools.pairwise(borders):
        is_kept = any(first <= start and end <= last for first, last in kept)
        for word in re.finditer(r".+" if is_kept else r"\w+|\W", block.text[start:end], re.DOTALL):
            output.append(word[0] if is_kept else word[0].upper())
            links.append(AlignedSpan(start + word.start(), start + word.end(), length, length + len(output[-1])))
            length += len(output[-1])
    return BlockTranslation("".join(output), tuple(links))


def noisy(chance: random.Random, text: DocumentText) -> str:
    """Return a text with other words and with signs that mean something."""
    is_text = text.mime_type is MimeType.TEXT
    output: list[str] = []
    is_kept = False
    for index, part in enumerate(_MARKUP.split(text.text)):
        if index % 2:
            is_kept = part.startswith("<code") or (is_kept and part != "</code>")
        if index % 2 or is_kept or text.text != text.text.strip():
            output.append(part)
            continue
        words = part.split(" ")
        match chance.randrange(4):
            case 0:
                words = [word.upper() for word in words]
            case 1:
                words.reverse()
            case 2:
                words = [word + chance.choice(_NOISE) if len(word) > 1 else word for word in words]
            case _:
                start = chance.choice(_STARTS)
                words[0] = (
                    (start if is_text else start.replace("& ", "&amp; ")) + words[0] if len(words[0]) > 2 else words[0]
                )
        output.append(" ".join(words))
    return "".join(output)


def bare(text: DocumentText) -> str:
    """Return a text without its tags, as a translator might that loses them."""
    return text.text if text.mime_type is MimeType.TEXT else re.sub("<[^<>]*>", "", text.text)


def translated(document: Document, translate: Callable[[DocumentText], str] = capitals) -> bytes:
    return document.written([translate(text) for text in document.texts])


def unchanged(document: Document) -> bytes:
    return document.written([text.text for text in document.texts])


def texts(document: Document) -> list[str]:
    return [text.text for text in document.texts]
