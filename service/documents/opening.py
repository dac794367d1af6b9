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
_SUBSTATION = Format("ass", "text/x-ssa", "substation")
_TIMED_TEXT = Format("ttml", "application/ttml+xml", "timed_text")
_XHTML = Format("xhtml", "application/xhtml+xml", "xhtml")
_XLIFF = Format("xliff", "application/xliff+xml", "xliff")
_YAML = Format("yaml", "application/yaml", "yaml_source")
# A process that reads one document imports no other format, which takes three quarters of the time of a small one.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".arb": Format("arb", "application/json", "json_source"),
        ".ass": _SUBSTATION,
        ".csv": Format("csv", f"text/csv{_TEXT}", "tables", "read_csv"),
        ".dfxp": _TIMED_TEXT,
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
        ".ssa": _SUBSTATION,
        ".strings": Format("strings", "text/plain", "apple_strings"),
        ".stringsdict": Format("stringsdict", "application/x-plist", "strings_dict"),
        ".tmx": Format("tmx", "application/x-tmx+xml", "tmx"),
        ".ts": Format("ts", "application/x-linguist", "qt_linguist"),
        ".tsv": Format("tsv", f"text/tab-separated-values{_TEXT}", "tables", "read_tsv"),
        ".ttml": _TIMED_TEXT,
        ".txt": Format("text", f"text/plain{_TEXT}", "lines"),
        ".vtt": Format("vtt", f"text/vtt{_TEXT}", "subtitles", "read_vtt"),
        ".xcstrings": Format("xcstrings", "application/json", "string_catalog"),
        ".xht": _XHTML,
        ".xhtml": _XHTML,
        ".xlf": _XLIFF,
        ".xliff": _XLIFF,
        ".xlsm": Format("xlsx", "application/vnd.ms-excel.sheet.macroEnabled.12", "xlsx"),
        ".xlsx": Format("xlsx", f"{_OPEN_XML}.spreadsheetml.sheet", "xlsx"),
        ".xltm": Format("xlsx", "application/vnd.ms-excel.template.macroEnabled.12", "xlsx"),
        ".xltx": Format("xlsx", f"{_OPEN_XML}.spreadsheetml.template", "xlsx"),
        ".xml": Format("android", "application/xml", "xml_strings", "read_android"),
        ".yaml": _YAML,
        ".yml": _YAML,
    }
)
"""The formats by the endings of files."""
ENDINGS = tuple(FORMATS)
"""The endings that `open_document` knows, in alphabetical order."""

# Endings that are not known: of files that are read as those of a known format, or that other programs convert to one.
_NEAR: Mapping[str, str] = MappingProxyType(
    {
        ".html": ".asp .aspx .ejs .hbs .j2 .jinja .jsp .php .phtml .shtml .svelte .twig .vue",
        ".json": ".json5 .jsonc .webmanifest",
        ".md": ".mdown .mkd .mkdn .qmd .rmd",
        ".resx": ".resw",
        ".ttml": ".itt .tt",
        ".txt": ".asc .log .text",
        ".vtt": ".webvtt",
        ".xliff": ".mqxliff .mxliff .sdlxliff",
    }
)
_CONVERTED: Mapping[str, str] = MappingProxyType(
    {
        ".docx": ".adoc .asciidoc .doc .org .pages .pdf .rtf .tex .textile .wps",
        ".epub": ".azw3 .fb2 .mobi",
        ".ods": ".fods .sxc",
        ".odt": ".fodt .ott .sxw",
        ".pptx": ".key .pps .ppt .pptm",
        ".srt": ".lrc .sbv .scc .smi .stl .sub",
        ".xlsx": ".numbers .xls .xlsb",
    }
)


def advice_for(ending: str) -> str:
    """Return advice on a file with an unknown ending; empty if no known format is near it."""
    for known in _NEAR:
        if ending in _NEAR[known].split():
            return f"try it as {known}, on the command line with --format {FORMATS[known].name}"
    return next((f"convert it to {known}" for known, others in _CONVERTED.items() if ending in others.split()), "")


def unknown(ending: str) -> str:
    found = f"the ending {ending!r} is" if ending else "a name without an ending is"
    advice = advice_for(ending)
    return f"{found} not supported{f' ({advice})' if advice else ''}; supported: {', '.join(ENDINGS)}."


def open_document(name: str, data: bytes, options: DocumentOptions | None = None) -> Document:
    """Read a document; `name` is that of its file, whose ending names the format, in any case."""
    ending = PurePath(name).suffix.lower()
    if ending not in FORMATS:
        raise UnknownFormat(unknown(ending))
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
