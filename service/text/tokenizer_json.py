"""Tokenizers of the `tokenizers` library: a `tokenizer.json`. The only importer of tokenizers."""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from service.bundle.manifest import BundleError, one_line
from service.text.token_spans import TokenSpan, by_prefixes, disjoint

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PROBE = "a \ufffd\U000f0000"  # holds characters that hardly any vocabulary has
_STRANGE = "\U00012000\U00013001\U00014402"  # letters that hardly any has; as bytes they end differently


class JsonTokenizer:
    """What a `tokenizer.json` describes, but without its template: prefix and end are the manifest's.

    As in transformers, a text that spells one of the file's added tokens gets that token's id ("eng_Latn" in an
    NLLB text), which chooses no language: the manifest's prefixes do. Encoding and decoding run without the
    interpreter's lock.
    """

    def __init__(self, file: Path) -> None:
        """Load the file.

        Raises:
            BundleError: it can't be read, is damaged, or has no token for what it doesn't know.
        """
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(file.read_bytes())
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self.decode(self.encode(_PROBE))
            added = self._tokenizer.get_added_tokens_decoder()
        except OSError as error:
            raise BundleError(f"{file} can't be read: {error}.") from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library raises plain Exceptions, and panics, which are not even those
            raise BundleError(f"{file} can't be used as a tokenizer: {one_line(error)}.") from error

        self._special_ids = frozenset(token_id for token_id, token in added.items() if token.special)
        self._unk_id = _unk_id(self._tokenizer)
        self._num_ids = self._tokenizer.get_vocab_size()
        byte_ids = (self._tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
        self._byte_ids = frozenset(token_id for token_id in byte_ids if token_id is not None)

    @property
    def unk_id(self) -> int | None:
        """As `Tokenizer.unk_id`."""
        return self._unk_id

    def encode(self, text: str) -> list[int]:
        """As `Tokenizer.encode`."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode`."""
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)

    def encode_target(self, text: str) -> list[int]:
        """As `Tokenizer.encode_target`."""
        return [token_id for token_id in self.encode(text) if token_id not in self._special_ids]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode_settled`.

        Pieces of single bytes are text only if all that stand together are: those at the end are not settled.
        """
        end = len(token_ids)
        if self._byte_ids:
            while end and not self._ends_bytes(token_ids[end - 1]):
                end -= 1
        return self.decode(token_ids[:end]).rstrip(_REPLACEMENT).rstrip()

    def _ends_bytes(self, token_id: int) -> bool:
        has_text = token_id < self._num_ids and token_id not in self._special_ids
        return has_text and token_id not in self._byte_ids

    def source_spans(self, text: str) -> list[TokenSpan]:
        """As `Tokenizer.source_spans`."""
        return disjoint(self._tokenizer.encode(text, add_special_tokens=False).offsets)

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        """As `Tokenizer.target_spans`."""
        return by_prefixes(self.decode, token_ids)


def _unk_id(tokenizer: tokenizers.Tokenizer) -> int | None:
    """The id of what there is no piece for. The library tells it of some kinds of models; this is what it does."""
    ids = [tokenizer.encode(character, add_special_tokens=False).ids[-1:] for character in _STRANGE]
    return ids[0][0] if ids[0] and all(each == ids[0] for each in ids) else None
