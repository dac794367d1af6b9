"""Documents of common formats: their texts, and the same documents with translations.

Pure. Translations replace the texts where they are in the source; every other byte stays as it was.
"""

from service.documents.document import Document, DocumentOptions, DocumentText, Doubt, MimeType, sample
from service.documents.errors import DocumentError, UnknownFormat
from service.documents.opening import ENDINGS, FORMATS, open_document

__all__ = [
    "ENDINGS",
    "FORMATS",
    "Document",
    "DocumentError",
    "DocumentOptions",
    "DocumentText",
    "Doubt",
    "MimeType",
    "UnknownFormat",
    "open_document",
    "sample",
]
