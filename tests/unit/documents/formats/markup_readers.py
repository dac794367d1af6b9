"""Readers of XML and HTML that are not ours; see readers.py."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

import html5lib

from tests.unit.documents.formats.readers import decoded, in_any_order, told, told_by_program

_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_LANGUAGES = {"lang", "xml:lang", _XML_LANGUAGE, "target-language", "trgLang", "language"}
_STATES = {"state", "subState", "state-qualifier"}


def parsed(data: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, LookupError) as error:
        raise ValueError from error


def of_xml(
    merged: Iterable[str] = (), of_text: Iterable[str] = (), read_text: Callable[[str], str] = str
) -> Callable[[bytes], Any]:
    """Return a reader of the elements but `merged` ones, of which those that look the same may become one.

    What is said is in elements `of_text`, or in any.
    """
    left, own = frozenset(merged), frozenset(of_text)

    def said(element: ElementTree.Element) -> Iterable[str]:
        if not own:
            return element.itertext()
        return (each.text or "" for each in element.iter() if _name(each) in own)

    def read(data: bytes) -> Any:
        root = parsed(data)
        if root.find(".//{*}r/{*}r") is not None:
            raise ValueError("a run of text within another one")
        found = (each for each in root.iter() if _name(each) not in left)
        return [(_name(each), _attributes(each), told("".join(map(read_text, said(each))))) for each in found]

    return read


def of_xhtml(data: bytes, merged: Iterable[str] = ()) -> Any:
    """Return the elements and all words of a page; which words are in which element is the markup's to say."""
    found = of_xml(merged)(data)
    return [[each[:2] for each in found], in_any_order(found[0][2])]


def of_timed_text(data: bytes) -> Any:
    return of_xhtml(data, ("span", "br"))


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _attributes(element: ElementTree.Element) -> list[tuple[str, str]]:
    left = _LANGUAGES | _STATES
    return sorted(each for each in element.attrib.items() if each[0] not in left and not each[0].endswith("}locale"))


def of_xliff(data: bytes) -> Any:
    """Return the elements, with what each unit says in the end: its finished target, else its source."""
    units: list[Any] = []

    def flat(element: ElementTree.Element) -> list[Any]:
        found: list[Any] = [told_by_program(element.text)]
        for each in element:
            found += [(each.tag, _attributes(each), flat(each)), told_by_program(each.tail)]
        return found

    def walk(element: ElementTree.Element) -> None:
        name = _name(element)
        units.append((name, _attributes(element)))
        space = element.tag.removesuffix(name)
        source, target = element.find(f"{space}source"), element.find(f"{space}target")
        if name in ("trans-unit", "segment") and source is not None:
            state = (target if name == "trans-unit" and target is not None else element).get("state", "final")
            has_target = target is not None and bool("".join(target.itertext()).strip() or len(target))
            is_done = has_target and state in ("final", "translated", "reviewed", "signed-off")
            units.append(flat(target if is_done and target is not None else source))
        for each in element:
            if each is not source and each is not target:
                walk(each)
            elif each is source:
                units.append(("source", [(every.tag, _attributes(every)) for every in each.iter()]))

    walk(parsed(data))
    return units


def of_tmx(data: bytes) -> Any:
    """Return all elements but variants, and what each unit says: in German, if it does, else in its first variant."""

    def walk(element: ElementTree.Element) -> Iterator[Any]:
        yield _name(element), _attributes(element)
        said = {
            each.get(_XML_LANGUAGE): told_by_program("".join("".join(text.itertext()) for text in each.findall("seg")))
            for each in element.findall("tuv")
        }
        if not said.keys() <= {"en", "en-US", "EN", "de", "fr"} or element.get("srclang") not in (None, "en"):
            raise ValueError("another language")
        yield said.get("de") or next(filter(None, said.values()), "")
        for each in element:
            if each.tag != "tuv":
                yield from walk(each)

    return list(walk(parsed(data)))


def of_ts(data: bytes) -> Any:
    """Return the elements but translations, and what each of Qt's messages says in the end: these, or its source."""
    found: list[Any] = []
    for each in parsed(data).iter():
        target = each.find("translation")
        if each.tag not in ("translation", "numerusform", "byte"):
            found.append((each.tag, _attributes(each), "" if each.tag == "source" else told(each.text)))
        if each.tag != "message" or target is None:
            continue
        is_numerus = each.get("numerus") == "yes"
        forms = target.findall("numerusform") if is_numerus else [target]
        texts = ["".join(form.itertext()) for form in forms]
        is_done = all(text.strip() for text in texts) and target.get("type") != "unfinished"
        if not is_done:
            source = "".join(each.find("source").itertext())  # type: ignore[union-attr]
            endings = {1: [r"\1"], 2: ["", r"\1"]}.get(len(forms) * is_numerus, [r"(\1)"])
            texts = [re.sub(r"(?<=\w\w)\(([a-z]{1,3})\)(?!\w)", ending, source) for ending in endings]
        found += [len(forms), *map(told_by_program, texts)]
    return found


def of_html(data: bytes) -> Any:
    """Return the same as `of_xhtml`, read as browsers do."""
    builder = html5lib.HTMLParser(namespaceHTMLElements=False)
    found: list[Any] = []
    texts: list[str] = []
    for each in builder.parse(decoded(data)).iter():
        texts.append(each.tail or "")
        if not isinstance(each.tag, str):
            found.append(("comment", told(each.text)))
            continue
        texts.append(each.text or "")
        kept = sorted((key, told(value)) for key, value in each.attrib.items() if key not in _LANGUAGES)
        found.append((each.tag, kept))
    return [found, in_any_order("".join(texts))]
