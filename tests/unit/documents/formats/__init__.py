"""Every format that the server reads, by the name of a file."""

from collections.abc import Mapping

from tests.unit.documents.formats import markdown, packages, strings, texts
from tests.unit.documents.formats.format import Format

_OPEN_XML, _MICROSOFT = f"{packages.OPEN_XML}.wordprocessingml", "application/vnd.ms-word"

FORMATS: Mapping[str, Format] = {
    "a.arb": strings.JSON,
    "a.csv": texts.CSV,
    "a.docm": packages.of_word(f"{_MICROSOFT}.document.macroEnabled"),
    "a.docx": packages.DOCX,
    "a.dotm": packages.of_word(f"{_MICROSOFT}.template.macroEnabled"),
    "a.dotx": packages.of_word(f"{_OPEN_XML}.template"),
    "a.epub": packages.EPUB,
    "a.htm": texts.HTML,
    "a.html": texts.HTML,
    "chrome.json": strings.CHROME,
    "go.json": strings.GO,
    "a.json": strings.JSON,
    "a.markdown": markdown.MARKDOWN,
    "a.md": markdown.MARKDOWN,
    "a.mdx": markdown.MARKDOWN,
    "a.odp": packages.ODP,
    "a.ods": packages.ODS,
    "a.odt": packages.ODT,
    "a.po": texts.PO,
    "a.pot": texts.POT,
    "a.pptx": packages.PPTX,
    "a.properties": strings.PROPERTIES,
    "a.resx": strings.RESX,
    "a.srt": texts.SRT,
    "a.strings": strings.STRINGS,
    "a.tsv": texts.TSV,
    "a.txt": texts.TEXT,
    "a.vtt": texts.VTT,
    "a.xlf": texts.XLIFF_1,
    "a.xliff": texts.XLIFF_2,
    "a.xml": strings.ANDROID,
    "rails.yaml": strings.RAILS,
    "a.yaml": strings.YAML,
    "a.yml": strings.YAML,
}
