"""A tokenizer with one id per character and a manifest for it, so that output is readable."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, Limits
from service.text.spans import TokenSpan, consecutive

EOS = 2
UNKNOWN = 3
PAIR = LanguagePair("en", "de", source_prefix_ids=(7,), target_prefix_ids=(8,))
SYMBOLS = tuple(map(chr, range(0xE000, 0xE008)))


class LetterTokenizer:
    """One id per character."""

    unk_id: int | None = None

    def encode(self, text: str) -> list[int]:
        return [ord(letter) + 10 for letter in text]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(token_id - 10) for token_id in token_ids)

    def encode_target(self, text: str) -> list[int]:
        return self.encode(text)

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        return self.decode(token_ids)

    def source_spans(self, text: str) -> list[TokenSpan]:
        return [(place, place + 1) for place in range(len(text))]

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        return [(place, place + 1) for place in range(len(token_ids))]


class PoorTokenizer(LetterTokenizer):
    """One id per character of Basic Latin, German and the reserved symbols; others are unknown, and not decoded."""

    unk_id = UNKNOWN

    def encode(self, text: str) -> list[int]:
        return [ord(letter) + 10 if is_known(letter) else UNKNOWN for letter in text]

    def decode(self, token_ids: Sequence[int]) -> str:
        return super().decode([token_id for token_id in token_ids if token_id != UNKNOWN])

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        return consecutive(int(token_id != UNKNOWN) for token_id in token_ids)


def is_known(letter: str) -> bool:
    """Return whether `PoorTokenizer` has a piece for a character."""
    return letter.isascii() or letter in "äöüÄÖÜß\u2028\u2029\x85" or letter in SYMBOLS


def letters_manifest(tiny_bundle: Path, *, max_source_tokens: int = 10_000, symbols: tuple[str, ...] = ()) -> Manifest:
    manifest = Manifest.load(tiny_bundle)
    tokenizer = dataclasses.replace(manifest.tokenizer, reserved_symbols=symbols, eos_id=EOS)
    limits = Limits(max_source_tokens, 10_000)
    return dataclasses.replace(manifest, languages=(PAIR,), limits=limits, tokenizer=tokenizer)
