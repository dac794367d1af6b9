"""The plan of a request's texts: passages, and in them the segments that the model translates."""

from collections.abc import Iterator
from typing import NamedTuple

from service.text.markup import HtmlDocument
from service.text.protected import Protected
from service.text.protection import ProtectedText
from service.text.spans import Offsets, Span


class PlannedSegment(NamedTuple):
    """A part of a passage, from `start` to before `end`, that is translated on its own.

    The model reads `fed`: `text`, with reserved symbols in place of `spans` if `protected` is set; nothing without
    `source_ids`, if there is nothing to translate besides `spans`. If it `has_numbers` that the model reads, they are
    compared with those of the translation. One that `is_aligned` needs an alignment of all its words, for the caller or
    for markup.
    """

    start: int
    text: str
    fed: str
    source_ids: tuple[int, ...]
    spans: tuple[Protected, ...] = ()
    protected: ProtectedText | None = None
    output_prefix_ids: tuple[int, ...] = ()
    has_numbers: bool = False
    is_aligned: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class PlannedPassage(NamedTuple):
    """A run of plain text: a whole text, or a block of HTML.

    Text outside its segments is returned unchanged. With `offsets`, it lacks characters of the source, and they map
    positions in it to those in the source.
    """

    text: str
    segments: tuple[PlannedSegment, ...]
    offsets: Offsets | None = None

    @property
    def num_characters(self) -> int:
        return self.as_written(len(self.text), len(self.text)).start

    def as_written(self, start: int, end: int) -> Span:
        """Return the position in the source as it was written, of which `text` may lack invisible characters."""
        return Span(start, end) if self.offsets is None else self.offsets.span(start, end)


class PlannedText(NamedTuple):
    """One text of a request; if it is HTML, with a passage for each block."""

    text: str
    passages: tuple[PlannedPassage, ...]
    html: HtmlDocument | None = None

    @property
    def segments(self) -> Iterator[PlannedSegment]:
        return (segment for passage in self.passages for segment in passage.segments)
