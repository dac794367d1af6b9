"""Targets: tokenizers, which must cope with any text and any ids."""

from service.text.incremental import IncrementalDecoder
from tests.fuzz.bounded import Target
from tests.fuzz.models import TOKENIZERS
from tests.fuzz.properties import covers
from tests.fuzz.source import Source

_NUM_IDS = 700  # more than any vocabulary here: a model's output layer may be padded
_MAX_IDS = 200


def encoding(name: str) -> Target:
    """Return a target for encoding: no text is rejected, and the ids' spans go through the text from left to right."""

    def target(data: bytes) -> None:
        tokenizer = TOKENIZERS[name]()
        text = Source(data).text()
        ids = tokenizer.encode(text)
        assert ids == tokenizer.encode(text)
        assert all(0 <= token_id < _NUM_IDS for token_id in ids)
        spans = tokenizer.source_spans(text)
        assert len(spans) == len(ids)
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert [start for start, _ in spans] == sorted(start for start, _ in spans), spans
        prefix = tokenizer.encode_target(text)
        assert tokenizer.encode_target(tokenizer.decode(prefix)) is not None
        tokenizer.decode(ids)

    return target


def decoding(name: str) -> Target:
    """Return a target for decoding any ids: spans cover the text, and the incremental output adds up to the text."""

    def target(data: bytes) -> None:
        tokenizer = TOKENIZERS[name]()
        pairs = zip(data[::2], data[1::2], strict=False)
        ids = [(high << 8 | low) % _NUM_IDS for high, low in pairs][:_MAX_IDS]
        text = tokenizer.decode(ids)
        spans = tokenizer.target_spans(ids)
        assert len(spans) == len(ids)
        assert covers(spans, len(text)), (spans, text)
        incremental, told = IncrementalDecoder(tokenizer), ""
        for end in range(1, len(ids) + 1, 1 + len(ids) % 3):
            assert text.startswith(tokenizer.decode_settled(ids[:end]))
            told += incremental.feed(ids[:end])
            assert text.startswith(told), (told, text)

    return target
