"""Tokenizers: text to piece ids and back, of every kind that a manifest can name."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from service.bundle.errors import BundleError
from service.bundle.manifest_parts import LanguagePair, TokenizerSpec
from service.text.indic.tokenizer import IndicPieces, IndicTokenizer
from service.text.sentencepiece_model import M2M100Tokenizer, MarianTokenizer, SentencePieceTokenizer
from service.text.spans import TokenSpan, without_spaces
from service.text.tokenizer_json import JsonTokenizer

_WITH_VOCABULARY = {"marian": MarianTokenizer, "m2m100": M2M100Tokenizer, "indictrans2": IndicPieces}
_KINDS = ("sentencepiece", *_WITH_VOCABULARY, "tokenizers")
# In the order of transformers 5's `clean_up_tokenization` (tokenization_utils_base.py).
_REPLACEMENTS = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)
# Words such that a space before them, or before a prefix of them, may be removed.
_UNSETTLED = re.compile(r"(?: (?:n'?|'[vr]?)?)*\Z")
_SPACES = re.compile("  +")


class Tokenizer(Protocol):
    """Converts text into ids of pieces and back. Thread-safe."""

    @property
    def unk_id(self) -> int | None:
        """Return the id that `encode` gives text without a piece; `None` if that can't occur or leaves no trace."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return ids of a text's pieces, without prefix and end-of-sentence id; empty if nothing in it is visible."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of pieces. Special ids, and those that pad the output layer, have no text."""
        ...

    def encode_target(self, text: str) -> list[int]:
        """Return the ids that a translation begins with, in the pieces that `decode` reads; omit text without one."""
        ...

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        """Return the prefix of `decode` that stays the same whatever ids follow."""
        ...

    def source_spans(self, text: str) -> list[TokenSpan]:
        """Return the positions in code points of the pieces of `encode(text)`, one span for each; some are empty.

        They are sorted. Text that the tokenizer drops or ignores, such as spaces, may be in none.
        """
        ...

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        """Return each token's span in `decode(token_ids)`, empty if it has no text; together they cover the text."""
        ...


def load_tokenizer(spec: TokenizerSpec, directory: Path) -> Tokenizer:
    if spec.kind not in _KINDS:
        known = ", ".join(map(repr, _KINDS))
        raise BundleError(f"{directory}: tokenizer.kind is {spec.kind!r}; this service knows {known}.")
    source_unk_id = spec.unk_id if spec.source_unk_id is None else spec.source_unk_id
    tokenizer = target = _load(spec, directory, spec.file, spec.vocabulary_file, source_unk_id)
    if spec.target_file or spec.target_vocabulary_file:
        file, vocabulary_file = spec.target_file or spec.file, spec.target_vocabulary_file or spec.vocabulary_file
        target = _load(spec, directory, file, vocabulary_file, spec.unk_id)
    if isinstance(tokenizer, IndicPieces) and isinstance(target, IndicPieces):
        tokenizer = IndicTokenizer(tokenizer, target)
    elif target is not tokenizer:
        tokenizer = _TwoSided(tokenizer, target)
    return _Cleaned(tokenizer, clean_up_spaces, settled) if spec.cleans_up_spaces else tokenizer


def of_prose(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer that writes single spaces: a model may write an empty piece, which is only a space."""
    return _Cleaned(tokenizer, single_spaced, str)


def of_pair(tokenizer: Tokenizer, pair: LanguagePair) -> Tokenizer:
    """Return the tokenizer of a pair, always the same object: the model's, unless its kind has one for each pair."""
    if isinstance(tokenizer, IndicTokenizer):
        return tokenizer.of(pair.source_language_code, pair.target_language_code)
    return tokenizer


def _load(spec: TokenizerSpec, directory: Path, file: str, vocabulary_file: str, unk_id: int) -> Tokenizer:
    if spec.kind == "sentencepiece":
        return SentencePieceTokenizer(directory / file)
    if spec.kind == "tokenizers":
        return JsonTokenizer(directory / file)
    if not vocabulary_file:
        raise BundleError(f"{directory}: tokenizer.vocabulary_file is empty; kind {spec.kind!r} needs a vocab.json.")
    special_tokens = {text: token_id for text, token_id in spec.special_tokens.items() if text}
    unnamed = {spec.pad_id, spec.eos_id, spec.unk_id}.difference(special_tokens.values())
    if unnamed:
        raise BundleError(
            f"{directory}: tokenizer.special_tokens has no text for id {min(unnamed)}; "
            f"kind {spec.kind!r} needs those of pad_id, eos_id and unk_id."
        )
    build = _WITH_VOCABULARY[spec.kind]
    return build(directory / file, directory / vocabulary_file, special_tokens, unk_id)


class _TwoSided:
    """Encodes with one tokenizer and decodes with another."""

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.unk_id = source.unk_id
        self.encode, self.source_spans = source.encode, source.source_spans
        self.decode, self.decode_settled = target.decode, target.decode_settled
        self.encode_target, self.target_spans = target.encode_target, target.target_spans


class _Cleaned:
    """Removes some spaces of translations: `clean` does, and `settled` leaves what it changes whatever follows."""

    def __init__(self, tokenizer: Tokenizer, clean: Callable[[str], str], settled: Callable[[str], str]) -> None:
        self._tokenizer, self._clean, self._settled = tokenizer, clean, settled
        self.unk_id = tokenizer.unk_id
        self.encode, self.encode_target = tokenizer.encode, tokenizer.encode_target
        self.source_spans = tokenizer.source_spans

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._clean(self._tokenizer.decode(token_ids))

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        return self._clean(self._settled(self._tokenizer.decode_settled(token_ids)))

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        text, spans = self._tokenizer.decode(token_ids), self._tokenizer.target_spans(token_ids)
        return spans if (clean := self._clean(text)) == text else without_spaces(spans, text, clean)


def clean_up_spaces(text: str) -> str:
    """Remove spaces as transformers' `clean_up_tokenization_spaces` does, which some checkpoints require."""
    for spaced, clean in _REPLACEMENTS:
        text = text.replace(spaced, clean)
    return text


def single_spaced(text: str) -> str:
    return _SPACES.sub(" ", text) if "  " in text else text


def settled(text: str) -> str:
    """Return the prefix of a text that `clean_up_spaces` leaves the same whatever follows the text."""
    return text[: _UNSETTLED.search(text).start()]  # type: ignore[union-attr]  # it matches the empty end, too
