"""Markdown: CommonMark (https://spec.commonmark.org) with what GitHub, GitLab, Pandoc, kramdown, Hugo, Jekyll, MkDocs,
Docusaurus and Obsidian add.

Headings, paragraphs, items, cells, notes, titles and descriptions of images are texts; a paragraph becomes one line,
but for its hard line breaks. Emphasis and links move with their words. Code, mathematics, addresses, labels, attributes
and templates stay as they are, and so does front matter, but for the keys that the caller names. Blocks of HTML are
read as HTML.
"""

from service.documents.document import Document, DocumentOptions, Spliced
from service.documents.encodings import decoded
from service.documents.markdown.front_matter import front_matter
from service.documents.markdown.reading import Reader


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read Markdown in UTF-8.

    Raises:
        DocumentError: it is not UTF-8.
    """
    source, encode = decoded(data)
    begin, slots = front_matter(source, options.front_matter)
    reader = Reader(source, begin)
    slots += reader.slots()
    notes = [f"{reader.num_left} texts were left as they are: their lines begin in an unusual way."]
    return Spliced(source, slots, encode, notes if reader.num_left else ())
