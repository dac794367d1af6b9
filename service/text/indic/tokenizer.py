"""IndicTrans2's tokenizer: a SentencePiece model and a vocabulary of each side, and each language's way of writing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from service.text.indic.languages import ENGLISH, LANGUAGE_CODE
from service.text.indic.rewriting import rewritten, spans_in, traced
from service.text.indic.writing import reading, settled, written
from service.text.sentencepiece_model import M2M100Tokenizer, read_vocabulary
from service.text.spans import TokenSpan, by_prefixes, disjoint


class IndicPieces(M2M100Tokenizer):
    """One side's pieces. Those that name languages are special: no text is encoded to them."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        vocabulary = read_vocabulary(vocabulary_file)
        tags = {piece: index for piece, index in vocabulary.items() if LANGUAGE_CODE.fullmatch(piece)}
        super().__init__(file, vocabulary_file, {**special_tokens, **tags}, unk_id)


class IndicTokenizer:
    """The tokenizer of one pair of languages, at first of English alone; `of` returns that of another pair."""

    def __init__(self, source: IndicPieces, target: IndicPieces, codes: tuple[str, str] = (ENGLISH, ENGLISH)) -> None:
        """Read the first of the languages `codes`, such as "hin_Deva", and write the second."""
        self._source, self._target = source, target
        self._reading, self._target_reading = map(reading, codes)
        self._code = codes[1]
        self._others: dict[tuple[str, str], IndicTokenizer] = {}  # the model's pairs, as they are used
        self.unk_id = source.unk_id

    def of(self, source: str, target: str) -> "IndicTokenizer":
        """Return the tokenizer, always the same one, of a pair of languages."""
        other = self._others.get((source, target))
        if other is None:
            other = self._others.setdefault(
                (source, target), IndicTokenizer(self._source, self._target, (source, target))
            )
        return other

    def encode(self, text: str) -> list[int]:
        return self._source.encode(rewritten(text, self._reading))

    def decode(self, token_ids: Sequence[int]) -> str:
        return written(self._target.decode(token_ids), self._code)

    def encode_target(self, text: str) -> list[int]:
        return self._target.encode_target(rewritten(text, self._target_reading))

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        return written(settled(self._target.decode_settled(token_ids)), self._code)

    def source_spans(self, text: str) -> list[TokenSpan]:
        read, origins = traced(text, self._reading)
        return disjoint(spans_in(origins, self._source.source_spans(read), len(text)))

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        return by_prefixes(self.decode, token_ids)
