"""Texts in chunks of one type and of bounded size."""

from service.documents.child import chunks
from service.documents.document import DocumentText, MimeType


def texts(kinds: str, size: int = 1) -> list[DocumentText]:
    types = {"t": MimeType.TEXT, "h": MimeType.HTML}
    return [DocumentText("x" * size, types[kind], "") for kind in kinds]


def test_a_chunk_has_texts_of_one_type_in_order() -> None:
    assert list(chunks(texts("thhtt"), 2, 100)) == [[0, 3], [4], [1, 2]]
    assert list(chunks([], 2, 100)) == []


def test_a_chunk_has_so_many_characters_unless_a_text_has_more() -> None:
    assert list(chunks(texts("ttt", 40), 10, 80)) == [[0, 1], [2]]
    assert list(chunks(texts("ttt", 90), 10, 80)) == [[0], [1], [2]]
