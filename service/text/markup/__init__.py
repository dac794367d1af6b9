"""HTML in and out of a translation: texts out of markup, and translations back into it."""

from service.text.markup.document import Block, BlockTranslation, HtmlDocument, blocks, parse

__all__ = ["Block", "BlockTranslation", "HtmlDocument", "blocks", "parse"]
