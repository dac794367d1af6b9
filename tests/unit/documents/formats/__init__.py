"""Every format that the server reads, by the ending of its files."""

from collections.abc import Mapping

from tests.unit.documents.formats import packages, strings, texts
from tests.unit.documents.formats.format import Format

_OPEN_XML, _MICROSOFT = f"{packages.OPEN_XML}.wordprocessingml", "application/vnd.ms-word"

FORMATS: Mapping[str, Format] = {
    ".arb": strings.JSON,
    ".csv": texts.CSV,
    ".docm": packages.of_word(f"{_MICROSOFT}.document.macroEnabled"),
    ".docx": packages.DOCX,
    ".dotm": packages.of_word(f"{_MICROSOFT}.template.macroEnabled"),
    ".dotx": packages.of_word(f"{_OPEN_XML}.template"),
    ".epub": packages.EPUB,
    ".htm": texts.HTML,
    ".html": texts.HTML,
    ".json": strings.JSON,
    ".odp": packages.ODP,
    ".ods": packages.ODS,
    ".odt": packages.ODT,
    ".po": texts.PO,
    ".pot": texts.POT,
    ".pptx": packages.PPTX,
    ".properties": strings.PROPERTIES,
    ".resx": strings.RESX,
    ".srt": texts.SRT,
    ".strings": strings.STRINGS,
    ".tsv": texts.TSV,
    ".txt": texts.TEXT,
    ".vtt": texts.VTT,
    ".xlf": texts.XLIFF_1,
    ".xliff": texts.XLIFF_2,
    ".xml": strings.ANDROID,
    ".yaml": strings.RAILS,
    ".yml": strings.YAML,
}
