"""Markdown: CommonMark (https://spec.commonmark.org) with what GitHub, GitLab, Pandoc, kramdown, Hugo, Jekyll, MkDocs,
Docusaurus and Obsidian add.

Headings, paragraphs, items, cells, notes, titles and descriptions of images are texts; a paragraph becomes one line,
but for its hard line breaks. Emphasis and links move with their words. Code, mathematics, addresses, labels,
attributes, templates and front matter stay, but for the keys that the caller names. Blocks of HTML are read as HTML.
"""

from service.documents.document import Document, DocumentOptions, Spliced
from service.documents.encodings import decoded
from service.documents.markdown.anchors import Outline, dead_links, relinked
from service.documents.markdown.front_matter import front_matter
from service.documents.markdown.reading import Reader


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read Markdown in UTF-8, or MDX if it looks like that."""
    return _read(data, options, is_mdx=False)


def read_mdx(data: bytes, options: DocumentOptions) -> Document:
    """Read MDX (https://mdxjs.com), where all that is in braces is JavaScript; else see `read`."""
    return _read(data, options, is_mdx=True)


def outline_of(source: str, begin: int = 0, *, is_mdx: bool = False) -> Outline:
    reader = Reader(source, begin, is_mdx=is_mdx)
    reader.slots()
    return reader.outline


def _read(data: bytes, options: DocumentOptions, *, is_mdx: bool) -> Document:
    source, encode = decoded(data)
    begin, slots, notes = front_matter(source, options.front_matter)
    reader = Reader(source, begin, is_mdx=is_mdx)
    slots += reader.slots()
    notes += [*reader.notes, *dead_links([reader.outline], [source])]

    def outline(text: str) -> Outline:
        return outline_of(text, front_matter(text, ())[0], is_mdx=reader.is_mdx)

    def with_links(text: str) -> bytes:
        return encode(*relinked([reader.outline], [text], outline) if text != source else (text,))

    return Spliced(source, slots, with_links, notes)
