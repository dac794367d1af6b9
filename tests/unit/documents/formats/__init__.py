"""Every format that the server reads, by the name of a file; other endings of the same reader have no row."""

from collections.abc import Mapping

from tests.unit.documents.formats import catalogues, markdown, office, packages, strings, texts
from tests.unit.documents.formats.format import Format

FORMATS: Mapping[str, Format] = {
    "a.ass": texts.ASS,
    "a.csv": texts.CSV,
    "a.docx": office.DOCX,
    "a.epub": packages.EPUB,
    "a.html": texts.HTML,
    "a.ipynb": strings.NOTEBOOK,
    "chrome.json": strings.CHROME,
    "go.json": strings.GO,
    "a.json": strings.JSON,
    "a.md": markdown.MARKDOWN,
    "a.mdx": markdown.MARKDOWN,
    "a.odp": packages.ODP,
    "a.ods": packages.ODS,
    "a.odt": packages.ODT,
    "a.po": catalogues.PO,
    "a.pot": catalogues.POT,
    "a.pptx": office.PPTX,
    "a.properties": strings.PROPERTIES,
    "a.resx": strings.RESX,
    "a.rst": texts.RST,
    "a.srt": texts.SRT,
    "a.strings": strings.STRINGS,
    "a.stringsdict": strings.STRINGS_DICT,
    "a.ts": catalogues.QT,
    "a.tsv": texts.TSV,
    "a.tmx": catalogues.TMX,
    "a.ttml": texts.TIMED_TEXT,
    "a.txt": texts.TEXT,
    "a.vtt": texts.VTT,
    "a.xhtml": packages.XHTML,
    "a.xcstrings": strings.CATALOG,
    "a.xlf": catalogues.XLIFF_1,
    "a.xliff": catalogues.XLIFF_2,
    "a.xlsx": office.XLSX,
    "a.xml": strings.ANDROID,
    "rails.yaml": strings.RAILS,
    "a.yaml": strings.YAML,
}
