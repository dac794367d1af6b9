"""Readers of documents that are not ours. What they find is nested lists, in which `Words` are what is said."""

import csv
import html
import io
import json
import re
from collections.abc import Hashable
from typing import Any

import polib
import srt
import yaml


class Words(str):
    """What a document says at one place, without what may differ: capitals, quotes, white space."""

    __slots__ = ()


def told(text: str | None) -> Words:
    return Words(re.sub(r"[\x00-\x20\xa0\"]+|]]>", "", text or "").upper())


def in_any_order(text: str) -> Words:
    return Words("".join(sorted(told(text))))


def told_by_program(text: str | None) -> Words:
    """Return a text without the signs of accelerators, which may be before another letter."""
    return told(re.sub("[&_]", "", text or ""))


def skeleton(outline: Any) -> Any:
    """Return an outline without what is said, but with where something is."""
    if isinstance(outline, Words):
        return bool(outline)
    return [skeleton(each) for each in outline] if isinstance(outline, list | tuple) else outline


def unescaped(text: str, spaces: str = "nt") -> str:
    def said(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else " " if match[2] in spaces else match[2]

    return re.sub(r"\\(?:[uU]([0-9A-Fa-f]{4})|(.))", said, text, flags=re.DOTALL)


def decoded(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def of_lines(data: bytes) -> Any:
    found = re.findall(r"([^\S\r\n]*)([^\r\n]*?)([^\S\r\n]*)(\r\n|\r|\n|\Z)", decoded(data))
    return [(before, told(text), after, end) for before, text, after, end in found]


def of_csv(data: bytes) -> Any:
    source = decoded(data)
    found = re.match(r"sep=(.)\r?\n", source) or re.match(r"[^,;|\t\r\n]*([,;|\t])", source)
    if found is None:
        raise ValueError
    return _rows(source[found.end() :] if found[0].startswith("sep=") else source, found[1])


def of_tsv(data: bytes) -> Any:
    return _rows(decoded(data), "\t")


def _rows(source: str, delimiter: str) -> Any:
    try:
        rows = list(csv.reader(io.StringIO(source, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError from error
    return [[told(cell) for cell in row] for row in rows]


def of_json(data: bytes) -> Any:
    def shape(value: Any) -> Any:
        return told(value) if isinstance(value, str) else [*map(shape, value)] if isinstance(value, list) else value

    def pairs(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(key, "" if key == "@@locale" else shape(value)) for key, value in found]

    return shape(json.loads(decoded(data), object_pairs_hook=pairs))


def of_catalog(data: bytes) -> Any:
    """Read Xcode's strings: what there is but German, and what each says in German if that is done, else its source."""
    catalog = json.loads(decoded(data))
    if not isinstance(catalog, dict) or not isinstance(catalog.get("strings"), dict):
        return catalog

    def units(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
        if not isinstance(value, dict):
            return []
        own = [(path, value)] if path[-1:] == ("stringUnit",) and isinstance(value.get("value"), str) else []
        return own + [unit for name, each in value.items() for unit in units(each, (*path, name))]

    found: list[Any] = [{**catalog, "strings": None}]
    for key, entry in catalog["strings"].items():
        localizations = entry.get("localizations", {}) if isinstance(entry, dict) else None
        if not isinstance(localizations, dict):
            found.append((key, entry))
            continue
        others = {name: each for name, each in localizations.items() if name.lower() != "de"}
        german = units(localizations.get("de"))
        if not german or {unit.get("state") for _, unit in german} != {"translated"}:
            german = units(localizations.get(catalog.get("sourceLanguage"), {"stringUnit": {"value": key}}))
        texts = [(path, told(unit["value"])) for path, unit in german]
        found.append((key, {**entry, "localizations": others}, sorted(texts)))
    return found


def of_notebook(data: bytes) -> Any:
    """Read a notebook: what its cells of Markdown say, and all else as it is."""
    notebook = json.loads(decoded(data))
    sources: list[Any] = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = cell.pop("source")
            sources.append((type(source), told(re.sub(r"\\([^\w\s])", r"\1", "".join(source)))))
    return sources, notebook


def of_rst(data: bytes) -> Any:
    """Return what paragraphs say, with their signs, but for how long lines are and what is escaped."""
    source = re.sub(r" <[^<>]*_>`__", "`_", decoded(data).replace("\r\n", "\n"))
    source = re.sub(r"(?m)([=~#-])\1+[ ]*$", r"\1", source)
    said = (re.sub(r"\\(.)", lambda match: match[1].strip(), each) for each in re.split(r"\n\s*\n", source.strip()))
    return [(len(each) - len(each.lstrip()), told(each)) for each in said]


def of_yaml(data: bytes) -> Any:
    seen: dict[int, int] = {}

    def shape(node: yaml.Node) -> Hashable:
        if id(node) in seen:
            return seen[id(node)]
        seen[id(node)] = len(seen)
        if isinstance(node, yaml.ScalarNode):
            return node.tag, told(node.value) if node.tag.endswith(":str") else node.value
        if isinstance(node, yaml.MappingNode):
            return node.tag, tuple(
                (key.value if isinstance(key, yaml.ScalarNode) else shape(key), shape(value))
                for key, value in node.value
            )
        return node.tag, tuple(map(shape, node.value))

    try:
        nodes = list(yaml.compose_all(decoded(data), yaml.SafeLoader))  # all of them, so that none has another's id
        return [shape(node) for node in nodes if node is not None]
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError from error


def of_rails(data: bytes) -> Any:
    """Read YAML whose root is the language."""
    return of_yaml(re.sub(rb"(?m)^( *)de:", rb"\1en:", data))


def of_properties(data: bytes) -> Any:
    """Read as `java.util.Properties` does."""
    lines = iter(re.split(r"\r\n|[\r\n]", decoded(data)))
    found = []
    for start in lines:
        line = start.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9A-Fa-f]{4})", line):
            raise ValueError(line)
        key = re.match(r"(?:\\.|[^\\=: \t\f])*", line)
        assert key is not None
        value = re.sub(r"^[ \t\f]*[=:]?[ \t\f]*", "", line[key.end() :])
        found.append((key[0], told(unescaped(value, "ntrf"))))
    return found


def of_strings(data: bytes) -> Any:
    """Read Apple's strings: comments, strings and signs, in order."""
    found = re.findall(r'//[^\r\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\w+|\S', decoded(data), re.DOTALL)
    return [told(unescaped(each, "ntrfabv")) if each[0] == '"' else each for each in found]


def of_po(data: bytes) -> Any:
    source = decoded(data)
    if re.search(r"[\x07\x08\x0b\x0c]|\r(?!\n)|\\[0-7xafbv]", source):  # which polib does not know
        raise ValueError
    try:
        entries = list(polib.pofile(source))
    except (OSError, IndexError, KeyError, UnicodeDecodeError) as error:  # what polib raises for broken ones
        raise ValueError from error
    return [
        (
            *(each.msgid, each.msgid_plural, each.msgctxt, each.comment, each.tcomment, each.occurrences),
            *(each.previous_msgid, each.obsolete, set(each.flags).difference(["fuzzy"] * bool(each.msgid_plural))),
            told_by_program(each.msgid if each.fuzzy or not each.msgstr else each.msgstr),
        )
        for each in entries
        if each.msgid
    ]


def of_srt(data: bytes) -> Any:
    try:
        cues = list(srt.parse(decoded(data)))
    except (srt.SRTParseError, srt.TimestampParseError) as error:
        raise ValueError from error
    if not all(re.fullmatch(r"(?:\w+:-?\d+ *)*", each.proprietary) for each in cues):
        raise ValueError
    return [
        [(each.index, each.start, each.end, each.proprietary, bool(each.content.strip())) for each in cues],
        in_any_order("".join(each.content.replace("-->", "->") for each in cues)),  # sentences may be cut elsewhere
    ]


def of_vtt(data: bytes) -> Any:
    text = re.sub("\r\n?", "\n", decoded(data))
    if not re.match(r"WEBVTT[ \t\n]", text):
        raise ValueError
    found: list[Any] = []
    said = ""
    for block in re.split(r"\n{2,}", text):
        cue = re.fullmatch(r"(?:([^\n]*)\n)?([\d:.]+ --> [^\n]*)(?:\n(.*))?", block, re.DOTALL)
        if block.count("-->") > (cue is not None):
            raise ValueError
        if cue:
            found.append((cue[1], cue[2], bool(cue[3])))
        elif re.match("WEBVTT|NOTE|STYLE|REGION", block):
            found.append(block)
        said += html.unescape((cue[3] or "") if cue else block)
    return [found, in_any_order(said)]


def of_ass(data: bytes) -> Any:
    """Read SubStation Alpha: all lines but what events say, and drawings."""
    found: list[Any] = []
    said = ""
    section = ""
    for line in map(str.lstrip, re.split(r"\r\r?\n|[\r\n]", decoded(data))):
        section = line.strip() if line.startswith("[") else section
        if section == "[Events]" and line.startswith("Format") and line.count(",") != 9:
            raise ValueError
        fields = line.split(",", 9)
        if section == "[Events]" and line.startswith("Dialogue:") and len(fields) == 10:
            drawings = re.findall(r"\{[^{}]*\\p[1-9][^{}]*\}(?:[^{]|\{(?![^{}]*\\p0))*", fields[9])
            found.append((fields[:9], drawings))
            said += re.sub(r"\{[^{}]*\}|\\[Nnh]", "", fields[9])
            if "{" in said or "}" in said:
                raise ValueError
        else:
            found.append(line)
    return [found, in_any_order(said)]
