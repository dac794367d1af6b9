"""Tokenizers of the `tokenizers` library: a `tokenizer.json`. The only importer of tokenizers."""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from service.bundle.manifest import BundleError
from service.text.spans import Span, by_prefixes, disjoint

_PROBE = "a \ufffd\U000f0000"  # holds characters that hardly any vocabulary has


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
        except OSError as error:
            raise BundleError(f"{file} can't be read: {error}.") from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library raises plain Exceptions, and panics, which are not even those
            raise BundleError(f"{file} can't be used as a tokenizer: {error}.") from error

    def encode(self, text: str) -> list[int]:
        """As `Tokenizer.encode`."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode`."""
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)

    def source_spans(self, text: str) -> list[Span]:
        """As `Tokenizer.source_spans`."""
        return disjoint(self._tokenizer.encode(text, add_special_tokens=False).offsets)

    def target_spans(self, token_ids: Sequence[int]) -> list[Span]:
        """As `Tokenizer.target_spans`."""
        return by_prefixes(self.decode, token_ids)
