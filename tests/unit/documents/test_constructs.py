"""Each construct of each format alone, many together, within each other, and damaged: other readers see the same."""

import functools
import random
import re
import resource
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from service.documents import FORMATS as KNOWN
from service.documents import Document, DocumentError, DocumentOptions, DocumentText, open_document
from tests.patience import patient
from tests.unit.documents.formats import FORMATS
from tests.unit.documents.formats.format import Format, files
from tests.unit.documents.formats.readers import skeleton
from tests.unit.documents.pseudo import bare, capitals, noisy, translated, unchanged

Open = Callable[[str, bytes, DocumentOptions], Document]
MAX_SECONDS, MAX_MIB = 1.0, 64  # for a small document, and for any number of them, one after the other
_SIGNS = b"<>&\"'\\{}[]():;,#%-=|@!?/* \n\r\t0aZ"
CASES = [(name, source) for name, known in FORMATS.items() for source in known.constructs]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with some parts left out, repeated, moved or replaced; often just a word outside of tags."""
    words = [word.span() for word in re.finditer(rb"[A-Za-z]+(?![^<>]*>)", data)]
    if words and chance.random() < 0.3:
        start, end = chance.choice(words)
        new = chance.choice([b"", data[start:end] * 2, "É\u00a0ß".encode(), b"&#65;", b"\\n", b"a  b\t"])
        return data[:start] + new + data[end:]
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randrange(len(data) + 1)
        part = data[start : start + chance.randint(0, 12)]
        rest = data[start + len(part) :]
        other = chance.randrange(len(data) + 1)
        any_byte, sign = bytes([chance.randrange(256)]), bytes([chance.choice(_SIGNS)])
        data = data[:start] + chance.choice([b"", part * 2, data[other : other + 10], any_byte, sign]) + rest
    return data


def test_each_reader_has_constructs() -> None:
    readers = {ending: (known.module, known.function) for ending, known in KNOWN.items()}
    assert {readers[PurePath(name).suffix] for name in FORMATS} == {*readers.values()}


@pytest.mark.parametrize(("name", "source"), CASES)
def test_a_construct(name: str, source: str) -> None:
    known = FORMATS[name]
    for variant in (bytes, *known.variants):
        data = variant(known.written([source]))
        document = open_document(name, data, replace(known.options, target=""))
        assert known.part or known.has_targets or unchanged(document) == data
        written = translated(open_document(name, data, known.options), known.translate)
        assert known.body(written) == known.body(variant(known.expected([source])))


def chosen(known: Format, chance: random.Random) -> list[str]:
    """Return all constructs of a format in any order, and some again."""
    constructs = list(known.constructs)
    more = chance.choices(constructs, k=chance.randint(0, 20))
    return chance.sample(constructs, len(constructs)) + [each for each in more if each not in known.once]


def check_generated(name: str, number: int, open_: Open = open_document) -> None:
    """Check a document of all constructs, and one of constructs within each other."""
    known, chance = FORMATS[name], random.Random(f"{name} {number}")

    def result(data: bytes, translate: Callable[[DocumentText], str] = known.translate) -> bytes:
        written = translated(open_(name, data, known.options), translate)
        assert not known.part or files(written).keys() == files(data).keys()
        return known.body(written)

    sources = chosen(known, chance)
    variant = chance.choice((bytes, *known.variants))
    data = variant(known.written(sources))
    assert result(data) == known.body(variant(known.expected(sources)))
    mixed = known.written([known.mixture(chance) for _ in range(4)]) if known.mixture else data
    for each in {data, mixed}:
        before = known.outline(known.body(each))
        written = result(each)
        assert known.outline(written) == before
        written = result(each, functools.partial(noisy, chance))
        assert skeleton(known.outline(written)) == skeleton(before)
        if known.translate is capitals:
            known.outline(result(each, bare))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [3, pytest.param(200, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_other_readers_see_the_same_structure(name: str, count: int) -> None:
    for number in range(count):
        check_generated(name, number)


def check_damaged(name: str, number: int, open_: Open = open_document) -> str:
    """Check that what another reader can read of a damaged document is the same for it before and after.

    Return whether the document was "refused", or is "right", or "read", but by nobody else.
    """
    known, chance = FORMATS[name], random.Random(f"{name} {number}")
    outline = known.outline_of_damaged or known.outline
    sources = chance.choices(list(known.constructs), k=3)
    sources += [known.mixture(chance)] if known.mixture and chance.random() < 0.3 else []
    data = known.written(sources)
    data = known.with_body(data, mutated(known.body(data), chance))
    if known.part and chance.random() < 0.2:
        data = mutated(data, chance)
    try:
        written = translated(open_(name, data, known.options), known.translate)
    except DocumentError:
        return "refused"
    try:
        before = outline(known.body(data))
    except (ValueError, KeyError, zipfile.BadZipFile):  # that the archive is damaged, or has no such file
        return "read"
    assert outline(known.body(written)) == before, data
    return "right"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [30, pytest.param(10_000, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
def test_a_damaged_document_is_refused_or_right(name: str, count: int) -> None:
    results: Counter[str] = Counter()
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        began = time.process_time()
        results[check_damaged(name, number)] += 1
        slowest = max(slowest, time.process_time() - began)
    mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name}: {dict(results)}, {slowest:.3f} s, {mib:.0f} MiB")
    assert results["right"] > count / 50
    assert slowest < patient(MAX_SECONDS)
    assert mib < MAX_MIB


@pytest.mark.parametrize("name", FORMATS)
def test_a_construct_that_is_lost_is_seen(name: str) -> None:
    """The positive control: each construct is seen by the other reader, so that its loss would be."""
    known = FORMATS[name]
    whole = list(known.constructs)
    outline = known.outline(known.body(known.written(whole)))
    for index, construct in enumerate(whole):
        rest = known.written(whole[:index] + whole[index + 1 :])
        assert known.outline(known.body(rest)) != outline, construct


def test_another_error_of_a_reader_is_seen() -> None:
    """A positive control: readers should raise `DocumentError` only."""

    def faulty(name: str, data: bytes, options: DocumentOptions) -> Document:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        check_damaged("a.txt", 0, faulty)
