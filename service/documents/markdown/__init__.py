"""Markdown: CommonMark (https://spec.commonmark.org) with what GitHub, GitLab, Pandoc, kramdown, Hugo, Jekyll, MkDocs,
Docusaurus and Obsidian add.

Headings, paragraphs, items, cells, notes, titles and descriptions of images are texts; a paragraph becomes one line,
but for its hard line breaks. Emphasis and links move with their words. Code, mathematics, addresses, labels, attributes
and templates stay as they are, and so does front matter, but for the keys that the caller names. Blocks of HTML are
read as HTML.
"""

from collections.abc import Callable, Sequence

from service.documents.document import Document, DocumentOptions, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.markdown.front_matter import front_matter
from service.documents.markdown.reading import Reader


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read Markdown in UTF-8, or MDX if it looks like that."""
    return _read(data, options, is_mdx=False)


def read_mdx(data: bytes, options: DocumentOptions) -> Document:
    """Read MDX (https://mdxjs.com), where all that is in braces is JavaScript; else see `read`."""
    return _read(data, options, is_mdx=True)


def of_cell(source: str) -> Document:
    """Read the Markdown of a notebook's cell, which has no front matter."""
    return _spliced(source, 0, [], str.encode, is_mdx=False)


def _read(data: bytes, options: DocumentOptions, *, is_mdx: bool) -> Document:
    source, encode = decoded(data)
    return _spliced(source, *front_matter(source, options.front_matter), encode, is_mdx=is_mdx)


def _spliced(
    source: str, begin: int, slots: Sequence[Slot], encode: Callable[[str], bytes], *, is_mdx: bool
) -> Document:
    reader = Reader(source, begin, is_mdx=is_mdx)
    slots = [*slots, *reader.slots()]
    return Spliced(source, slots, encode, [*reader.notes])
