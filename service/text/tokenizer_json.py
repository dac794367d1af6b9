"""Tokenizers of the `tokenizers` library: a `tokenizer.json`. The only module that imports tokenizers."""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from service.bundle.errors import BundleError, one_line
from service.text.spans import TokenSpan, by_prefixes, disjoint

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PROBE = "a \ufffd\U000f0000"  # contains characters that hardly any vocabulary has
_STRANGE = "\U00012000\U00013001\U00014402"  # letters of hardly any vocabulary; their UTF-8 bytes end differently


class JsonTokenizer:
    """The tokenizer of a `tokenizer.json`, without its template: prefix and end come from the manifest.

    Special tokens spelled in a text ("eng_Latn") are text, as with transformers' `split_special_tokens`. Releases the
    GIL.
    """

    def __init__(self, file: Path) -> None:
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(file.read_bytes())
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self._tokenizer.encode_special_tokens = True  # as other texts
            self.decode(self.encode(_PROBE))
            added = self._tokenizer.get_added_tokens_decoder()
        except OSError as error:
            raise BundleError(f"{file} can't be read: {error}.") from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library raises plain Exceptions, and panics, which are BaseExceptions
            raise BundleError(f"{file} can't be used as a tokenizer: {one_line(error)}.") from error

        self._special_ids = frozenset(token_id for token_id, token in added.items() if token.special)
        self.unk_id = _unk_id(self._tokenizer)
        self._num_ids = self._tokenizer.get_vocab_size()
        byte_ids = (self._tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
        self._byte_ids = frozenset(token_id for token_id in byte_ids if token_id is not None)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)

    def encode_target(self, text: str) -> list[int]:
        return [token_id for token_id in self.encode(text) if token_id not in self._special_ids]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        # Byte pieces are text only if all adjacent ones are, so those at the end are not settled.
        end = len(token_ids)
        if self._byte_ids:
            while end and not self._ends_bytes(token_ids[end - 1]):
                end -= 1
        return self.decode(token_ids[:end]).rstrip(_REPLACEMENT).rstrip()

    def _ends_bytes(self, token_id: int) -> bool:
        has_text = token_id < self._num_ids and token_id not in self._special_ids
        return has_text and token_id not in self._byte_ids

    def source_spans(self, text: str) -> list[TokenSpan]:
        return disjoint(self._tokenizer.encode(text, add_special_tokens=False).offsets)

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        return by_prefixes(self.decode, token_ids)


def _unk_id(tokenizer: tokenizers.Tokenizer) -> int | None:
    """Return the id of text without a piece. The library reports it for some model types; this tests the behaviour."""
    ids = [tokenizer.encode(character, add_special_tokens=False).ids[-1:] for character in _STRANGE]
    return ids[0][0] if ids[0] and all(each == ids[0] for each in ids) else None
