"""The options of a document, in one table, from which the command line's flags and the forms over HTTP are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from service.documents.opening import FORMATS


@dataclass(frozen=True, slots=True)
class DocumentOption:
    """An option; `formats` are the names of those that it is for. In `DocumentOptions` it may have another name."""

    flag: str
    kind: type
    help: str
    formats: tuple[str, ...]
    metavar: str | None = None
    attribute: str = ""

    @property
    def default(self) -> Any:
        return self.kind()


_OF_KEYS = ("json", "arb", "yaml", "properties", "strings", "stringsdict", "xcstrings", "resx")

DOCUMENT_OPTIONS: Mapping[str, DocumentOption] = MappingProxyType(
    {
        "columns": DocumentOption(
            "--column",
            list,
            "For tables: names of the columns to translate; may be repeated.",
            ("tsv", "csv"),
            "N|NAME",
        ),
        "has_header": DocumentOption(
            "--header",
            bool,
            "For tables: the first line has the names of the columns, even if they are numbers.",
            ("tsv", "csv"),
        ),
        "encoding": DocumentOption(
            "--encoding",
            str,
            "For text, tables, Markdown and subtitles: the file's encoding, such as windows-1252.",
            ("text", "tsv", "csv", "md", "rst", "srt", "vtt", "ass"),
            "NAME",
        ),
        "retranslate": DocumentOption(
            "--retranslate",
            bool,
            "For .po, .xliff, .tmx, .ts and .xcstrings: also translate entries that have a translation.",
            ("po", "xliff", "tmx", "ts", "xcstrings"),
            attribute="has_all",
        ),
        "front_matter": DocumentOption(
            "--front-matter",
            str,
            "For Markdown: keys of its front matter to translate, such as title,description.",
            ("md", "mdx"),
            "KEY,...",
        ),
        "attributes": DocumentOption(
            "--attributes",
            bool,
            "For HTML: also translate attributes that readers see, such as alt and title; lang becomes the target.",
            ("html", "xhtml"),
        ),
        "keys": DocumentOption(
            "--key",
            list,
            "For strings of programs: keys whose values are translated even if they look like code; may be repeated.",
            _OF_KEYS,
            "GLOB",
        ),
        "skip_keys": DocumentOption(
            "--skip-key",
            list,
            "For strings of programs: keys whose values stay as they are, such as meta.*; may be repeated.",
            _OF_KEYS,
            "GLOB",
        ),
    }
)


def is_for(option: str, file_name: str) -> bool:
    known = FORMATS.get(PurePath(file_name).suffix.lower())
    return known is None or known.name in DOCUMENT_OPTIONS[option].formats


def document_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `DocumentOptions` for options by the names of the table; others in `given` are left out."""
    fields = {option.attribute or name: given[name] for name, option in DOCUMENT_OPTIONS.items() if name in given}
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    if "front_matter" in fields:
        fields["front_matter"] = tuple(key.strip() for key in fields["front_matter"].split(",") if key.strip())
    return fields
