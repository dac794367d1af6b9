"""Each construct of a format alone, many together, and damaged; read again by readers that are not ours."""

import contextlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Hashable
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.constructs import FORMATS
from tests.unit.documents.pseudo import translated, unchanged
from tests.unit.documents.test_any_bytes import mutated

OPTIONS = DocumentOptions(target="de")
LANGUAGES = {
    ("a.xml", b'tools:locale="de"'): b'tools:locale="en"',
    ("a.epub", b'lang="de" xml:lang="de"'): b'lang="en" xml:lang="en"',
}


def result(name: str, data: bytes) -> bytes:
    return translated(open_document(name, data, OPTIONS))


def body(name: str, data: bytes) -> bytes:
    found = FORMATS[name].body(data)
    for (other, new), old in LANGUAGES.items():
        found = found.replace(new, old) if other == name else found
    return found


CASES = [(name, source, expected) for name, each in FORMATS.items() for source, expected in each.constructs.items()]


@pytest.mark.parametrize(("name", "source", "expected"), CASES)
def test_a_construct(name: str, source: str, expected: str) -> None:
    known = FORMATS[name]
    data = known.written([source])
    assert unchanged(open_document(name, data)) == data or zipfile.is_zipfile(io.BytesIO(data))
    assert body(name, result(name, data)).decode() == body(name, known.written([expected])).decode()


def chosen(name: str, chance: random.Random) -> list[str]:
    constructs = list(FORMATS[name].constructs)
    more = chance.choices(constructs, k=chance.randint(0, 20))
    once = [each for each in more if "&name" not in each]  # an anchor, which PyYAML wants but once
    return chance.sample(constructs, len(constructs)) + once


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.full)])
def test_any_constructs_together(name: str, count: int) -> None:
    known, chance = FORMATS[name], random.Random(name)
    for _ in range(count):
        sources = chosen(name, chance)
        data = known.written(sources)
        expected = body(name, known.written([known.constructs[each] for each in sources]))
        written = result(name, data)
        assert body(name, written).decode() == expected.decode()
        assert outline(name, written) == outline(name, data)
        if known.part:
            assert files(written).keys() == files(data).keys()


def files(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        if "mimetype" in archive.namelist():
            first = archive.infolist()[0]
            assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
        return {name: archive.read(name) for name in archive.namelist()}


def outline(name: str, data: bytes) -> Any:
    """Return what another reader finds in a document, texts in capitals and without what only their form has.

    Raises:
        ValueError: it can't be read.
    """
    return READERS[name](FORMATS[name].body(data))


def told(text: str | None) -> str:
    """Return a text without what may differ, such as line breaks."""
    return re.sub(r"[\x00-\x20\xa0\"]+|]]>", "", text or "").upper()


def unescaped(text: str, spaces: str = "nt") -> str:
    def said(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else " " if match[2] in spaces else match[2]

    return re.sub(r"\\(?:[uU]([0-9A-Fa-f]{4})|(.))", said, text, flags=re.DOTALL)


def of_json(data: bytes) -> Any:
    def shape(value: Any) -> Any:
        return told(value) if isinstance(value, str) else [*map(shape, value)] if isinstance(value, list) else value

    def pairs(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(key, "" if key == "@@locale" else shape(value)) for key, value in found]

    return shape(json.loads(data, object_pairs_hook=pairs))


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
        nodes = list(yaml.compose_all(data.decode(), yaml.SafeLoader))  # all of them, so that none has another's id
        return [shape(node) for node in nodes if node is not None]
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError from error


def of_properties(data: bytes) -> Any:
    """Read as `java.util.Properties` does."""
    lines = iter(re.split(r"\r\n|[\r\n]", data.decode()))
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


def of_xml(data: bytes) -> Any:
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ValueError from error
    found = ((each.tag.rpartition("}")[2], told("".join(map(unescaped, each.itertext())))) for each in root.iter())
    return [each for each in found if each[0] not in ("r", "rPr", "t", "span")]  # what is said in the same form is one


READERS: dict[str, Callable[[bytes], Any]] = {
    "a.json": of_json,
    "a.yml": of_yaml,
    "a.properties": of_properties,
    "a.strings": lambda data: told(unescaped(data.decode(), "ntrfabv")),
    **dict.fromkeys(("a.xml", "a.resx", "a.pptx", "a.odt", "a.epub"), of_xml),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_a_damaged_document_is_refused_or_right(name: str, count: int) -> None:
    """What another reader can read is the same for it before and after."""
    known, chance = FORMATS[name], random.Random(name)
    num_read = 0
    for _ in range(count):
        sources = chance.choices(list(known.constructs), k=3)
        text = mutated(known.separator.join(sources).encode(), chance).decode("utf-8", "replace")
        data = known.written([text])
        try:
            written = result(name, data)
        except DocumentError:
            continue
        num_read += 1
        with contextlib.suppress(ValueError):
            before = outline(name, data)
            assert outline(name, written) == before, text
    assert num_read > count / 50
