"""Apple's `.stringsdict`: a property list of strings that depend on a number, a width or a device.

All strings are texts but those that say what a variable is:
https://developer.apple.com/documentation/xcode/localizing-strings-that-contain-plurals.
"""

from collections.abc import Iterator

from service.documents.document import Document, DocumentOptions, Slot, Spliced
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.plural_categories import notes_of_missing
from service.documents.xml_source import Element, XmlSource, as_raw, decoded_xml, from_raw

_OF_A_VARIABLE = ("NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey")


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a property list in XML, in the encoding that it says."""
    data, encode = decoded_xml(data)
    reader = _Reader(XmlSource(data), KeyedValues(options, "objc-format", signs=""))
    slots = list(reader.slots())
    notes = [*reader.values.notes, *notes_of_missing(reader.plurals, options.target)]
    return Spliced(data.decode("latin-1"), slots, lambda raw: encode(from_raw(raw)), notes)


class _Reader:
    """The texts of one document; `plurals` are the categories of each that depends on a number."""

    def __init__(self, source: XmlSource, values: KeyedValues) -> None:
        self._source = source
        self.values = values
        self.plurals: list[set[str]] = []

    def slots(self) -> Iterator[Slot]:
        for entries in self._source.elements(self._wanted):
            yield from self._of_dict(entries, "")

    def _wanted(self, root: Element) -> tuple[str, ...]:
        if root.name != "plist":
            problem = f"the root is <{root.name[:40]}>; property lists in XML are in <plist>."
            raise DocumentError(problem, self._source.place(root.start))
        return ("dict",)

    def _of_dict(self, entries: Element, name: str) -> Iterator[Slot]:
        """Yield the slots of a dictionary that belongs to the text of a name."""
        key, keys = "", set()
        for element in entries.elements:
            if element.name == "key":
                key = element.text()
                keys.add(key)
            elif element.name == "dict":
                yield from self._of_dict(element, name or key)
            elif element.name == "string" and key not in _OF_A_VARIABLE:
                place = self._source.place(element.start)
                yield from self.values.slots((name,), element.inner, element.outer, element.text(), place, as_raw)
        if "NSStringFormatValueTypeKey" in keys:
            self.plurals.append(keys)
