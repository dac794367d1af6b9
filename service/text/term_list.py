"""Terms in about as many bytes as a file of them has."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from service.domain.translation import Term

# Bytes that no text in UTF-8 has.
_TARGET, _IS_CASE_SENSITIVE = b"\xff", b"\xfe"
_ERRORS = "surrogatepass"  # callers' terms may have lone surrogates


class TermList(Sequence[Term]):
    """A sequence of terms, made when they are asked for: as objects they take up to 30 times the bytes of a file."""

    __slots__ = ("_records", "_starts")

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        records, starts = bytearray(), array("Q", (0,))
        for term in terms:
            records += _record(term)
            starts.append(len(records))
        self._records = bytes(records)
        # Half as wide where that is enough.
        self._starts = array("I", starts) if len(records) < 2**32 else starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Term: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Term]: ...

    def __getitem__(self, index: int | slice) -> Term | Sequence[Term]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = index if index >= 0 else index + len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"the index is {index}; allowed: {-len(self)} to {len(self) - 1}.")
        return _term(self._record(place))

    def source(self, index: int) -> str:
        record = self._record(index)
        return record.removesuffix(_IS_CASE_SENSITIVE).partition(_TARGET)[0].decode("utf-8", _ERRORS)

    def numbers(self, *, is_case_sensitive: bool) -> Iterator[int]:
        mark = _IS_CASE_SENSITIVE[0]
        for index in range(len(self)):
            end = self._starts[index + 1]
            if (end > self._starts[index] and self._records[end - 1] == mark) is is_case_sensitive:
                yield index

    def _record(self, index: int) -> bytes:
        return self._records[self._starts[index] : self._starts[index + 1]]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TermList):
            return self._records == other._records and self._starts == other._starts
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def _record(term: Term) -> bytes:
    target = b"" if term.target is None else _TARGET + term.target.encode("utf-8", _ERRORS)
    return term.source.encode("utf-8", _ERRORS) + target + (_IS_CASE_SENSITIVE if term.is_case_sensitive else b"")


def _term(record: bytes) -> Term:
    words = record.removesuffix(_IS_CASE_SENSITIVE)
    source, has_target, target = words.partition(_TARGET)
    return Term(
        source.decode("utf-8", _ERRORS),
        target.decode("utf-8", _ERRORS) if has_target else None,
        is_case_sensitive=len(words) < len(record),
    )
