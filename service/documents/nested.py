"""Texts within the stretch of another text, such as a note within its sentence."""

import bisect
import functools
from collections.abc import Callable, Iterator, Sequence

from service.documents.document import DocumentText, Slot

Filled = Callable[[int, int], str]
"""Returns a part of the source, by its start and end, with the translations of the texts in it."""


def around(
    source: str, inner: Sequence[Slot], start: int, end: int, text: DocumentText, write: Callable[[Filled, str], str]
) -> Iterator[Slot]:
    """Yield the slots for `text`, which is from `start` to before `end`, and for those `inner` ones, in order.

    The inner ones come first, take no room and keep what they write; `write` then puts it where it belongs.
    """
    if not inner:
        yield Slot(start, end, text, functools.partial(write, lambda first, last: source[first:last]))
        return
    written = [""] * len(inner)
    starts = [slot.start for slot in inner]

    def keep(index: int, translation: str) -> str:
        slot = inner[index]
        is_new = slot.is_target or translation != slot.text.text
        written[index] = slot.write(translation) if is_new else source[slot.start : slot.end]
        return ""

    def filled(first: int, last: int) -> str:
        output: list[str] = []
        for index in range(bisect.bisect_left(starts, first), bisect.bisect_left(starts, last)):
            output += (source[first : starts[index]], written[index])
            first = inner[index].end
        return "".join((*output, source[first:last]))

    def own(translation: str) -> str:
        return filled(start, end) if translation == text.text else write(filled, translation)

    for index, slot in enumerate(inner):
        yield Slot(start, start, slot.text, functools.partial(keep, index), is_target=True)
    yield Slot(start, end, text, own, is_target=True)
