"""The one way to open a document: its format by the ending of its name. All formats are in one table here."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from service.documents.document import Document, DocumentOptions
from service.documents.encodings import Recoded, recoded
from service.documents.errors import DocumentError, UnknownFormat

MAX_BYTES = 32 * 1024 * 1024  # of a document; of the archive, if it is one

_Reader = Callable[[bytes, DocumentOptions], Document]


class Format(NamedTuple):
    """A format: what `--format` calls it, its media type, and the module and the function that read it."""

    name: str
    media_type: str
    module: str
    function: str = "read"


_TEXT = "; charset=utf-8"
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_MARKDOWN = Format("md", f"text/markdown{_TEXT}", "markdown")
_PAGE = Format("html", f"text/html{_TEXT}", "html")
_XLIFF = Format("xliff", "application/xliff+xml", "xliff")
_YAML = Format("yaml", "application/yaml", "yaml_source")
# A process that reads one document imports no other format, which takes three quarters of the time of a small one.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".arb": Format("arb", "application/json", "json_source"),
        ".csv": Format("csv", f"text/csv{_TEXT}", "tables", "read_csv"),
        ".docm": Format("docx", "application/vnd.ms-word.document.macroEnabled.12", "docx"),
        ".docx": Format("docx", f"{_OPEN_XML}.wordprocessingml.document", "docx"),
        ".dotm": Format("docx", "application/vnd.ms-word.template.macroEnabled.12", "docx"),
        ".dotx": Format("docx", f"{_OPEN_XML}.wordprocessingml.template", "docx"),
        ".epub": Format("epub", "application/epub+zip", "epub"),
        ".htm": _PAGE,
        ".html": _PAGE,
        ".ipynb": Format("ipynb", "application/x-ipynb+json", "notebook"),
        ".json": Format("json", "application/json", "json_source"),
        ".markdown": _MARKDOWN,
        ".md": _MARKDOWN,
        ".mdx": Format("mdx", f"text/markdown{_TEXT}", "markdown", "read_mdx"),
        ".odp": Format("odp", f"{_OPEN_DOCUMENT}.presentation", "odf"),
        ".ods": Format("ods", f"{_OPEN_DOCUMENT}.spreadsheet", "odf"),
        ".odt": Format("odt", f"{_OPEN_DOCUMENT}.text", "odf"),
        ".po": Format("po", "text/x-gettext-translation", "po"),
        ".pot": Format("po", "text/x-gettext-translation-template", "po", "read_template"),
        ".pptx": Format("pptx", f"{_OPEN_XML}.presentationml.presentation", "pptx"),
        ".properties": Format("properties", "text/x-java-properties", "properties"),
        ".resx": Format("resx", "text/microsoft-resx", "xml_strings", "read_resx"),
        ".rst": Format("rst", f"text/x-rst{_TEXT}", "rst"),
        ".srt": Format("srt", "application/x-subrip", "subtitles", "read_srt"),
        ".strings": Format("strings", "text/plain", "apple_strings"),
        ".tsv": Format("tsv", f"text/tab-separated-values{_TEXT}", "tables", "read_tsv"),
        ".txt": Format("text", f"text/plain{_TEXT}", "lines"),
        ".vtt": Format("vtt", f"text/vtt{_TEXT}", "subtitles", "read_vtt"),
        ".xlf": _XLIFF,
        ".xliff": _XLIFF,
        ".xml": Format("android", "application/xml", "xml_strings", "read_android"),
        ".yaml": _YAML,
        ".yml": _YAML,
    }
)
"""The formats by the endings of files."""
ENDINGS = tuple(FORMATS)
"""The endings that `open_document` knows, in alphabetical order."""


def open_document(name: str, data: bytes, options: DocumentOptions | None = None) -> Document:
    """Read a document; `name` is that of its file, whose ending names the format, in any case."""
    ending = PurePath(name).suffix.lower()
    if ending not in FORMATS:
        found = f"the ending {ending!r} is" if ending else "a name without an ending is"
        raise UnknownFormat(f"{found} not known; known are {', '.join(ENDINGS)}.")
    if len(data) > MAX_BYTES:
        raise DocumentError(f"it has {len(data)} bytes, and at most {MAX_BYTES} are read; split it.")
    known = FORMATS[ending]
    reader: _Reader = getattr(importlib.import_module(f"service.documents.{known.module}"), known.function)
    options = options or DocumentOptions()
    if not options.encoding:
        return reader(data, options)
    text = recoded(data, options.encoding)
    document = reader(text, options)
    return document if text is data else Recoded(document, options.encoding)
