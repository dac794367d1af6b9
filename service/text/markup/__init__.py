"""Translation of HTML: extraction of texts from markup, and insertion of translations into it."""

from service.text.markup.block import Block, BlockTranslation
from service.text.markup.document import HtmlDocument, blocks, parse

__all__ = ["Block", "BlockTranslation", "HtmlDocument", "blocks", "parse"]
