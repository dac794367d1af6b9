"""Texts in chunks of bounded size, each of one type: what is translated by one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.documents.document import DocumentText


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The most texts of a chunk, and their characters."""

    max_texts: int
    max_characters: int


def chunks(texts: Sequence[DocumentText], limits: ChunkLimits) -> Iterator[list[int]]:
    """Yield the indices of texts in chunks, which have no more characters than allowed, unless a text has more."""
    for kind in {text.mime_type: None for text in texts}:
        chunk: list[int] = []
        num_characters = 0
        for number, text in enumerate(texts):
            if text.mime_type is not kind:
                continue
            if chunk and (len(chunk) == limits.max_texts or num_characters + len(text.text) > limits.max_characters):
                yield chunk
                chunk, num_characters = [], 0
            chunk.append(number)
            num_characters += len(text.text)
        yield chunk
