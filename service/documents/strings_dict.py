"""Apple's `.stringsdict`: a property list of strings by number, width or device; those describing variables stay.
https://developer.apple.com/documentation/xcode/localizing-strings-that-contain-plurals"""

from collections.abc import Iterator

from service.documents.document import Document, DocumentOptions, Slot, Spliced
from service.documents.keyed_values import KeyedValues
from service.documents.plural_categories import notes_of_missing
from service.documents.xml_source import Element, as_raw, read_xml

_OF_A_VARIABLE = ("NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey")


def read(data: bytes, options: DocumentOptions) -> Document:
    source, encode = read_xml(data)
    values, plurals = KeyedValues(options, "objc-format", signs=""), list[set[str]]()

    def of_dict(entries: Element, name: str) -> Iterator[Slot]:
        key, keys = "", set()
        for element in entries.elements:
            if element.name == "key":
                key = element.text()
                keys.add(key)
            elif element.name == "dict":
                yield from of_dict(element, name or key)
            elif element.name == "string" and key not in _OF_A_VARIABLE:
                place = source.place(element.start)
                yield from values.slots((name,), element.inner, element.outer, element.text(), place, as_raw)
        if "NSStringFormatValueTypeKey" in keys:
            plurals.append(keys)

    slots = [slot for entries in source.elements_of("plist", "dict") for slot in of_dict(entries, "")]
    return Spliced(source.raw, slots, encode, [*values.notes, *notes_of_missing(plurals, options.target)])
