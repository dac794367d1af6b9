"""Text for which a tokenizer has no pieces, for every kind, and the cost of finding it."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from service.text.sentencepiece_model import SentencePieceTokenizer
from service.text.tokenizer_json import JsonTokenizer
from service.text.unknown import UnknownCharacters
from tests.servers import REPOSITORY


@pytest.fixture(scope="module")
def shipped() -> UnknownCharacters:
    return UnknownCharacters(SentencePieceTokenizer(REPOSITORY / "models" / "en-de" / "1" / "tokenizer.model"))


def found(unknown: UnknownCharacters, text: str) -> list[str]:
    return [text[start:end] for start, end in unknown.find(text)]


def test_with_bytes_nothing_is_unknown(tmp_path: Path) -> None:
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = tokenizers.Tokenizer(models.BPE(alphabet, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.save(str(tmp_path / "bytes.json"))
    by_level = JsonTokenizer(tmp_path / "bytes.json")
    assert by_level.unk_id is None
    assert not found(UnknownCharacters(by_level), "a 漢字 🍕 £5 \ufffd")


def test_what_a_tokenizer_drops_without_an_id_is_unknown(tmp_path: Path) -> None:
    made = tokenizers.Tokenizer(models.BPE({letter: number for number, letter in enumerate("abc")}, []))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "drops.json"))
    unknown = UnknownCharacters(JsonTokenizer(tmp_path / "drops.json"))
    assert found(unknown, "a 漢字 b £5 c") == ["漢字", "£5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I like 漢字 very much.", ["漢字"]),
        ("Price: £5.20, ¥100, 5€.", ["£5.20", "¥100", "5€"]),
        ("I love 🍕 and 🍣 🍜.", ["🍕", "🍣 🍜"]),
        ("👨‍👩‍👧, 👍🏽, 🇩🇪, ❤️, 🏴󠁧󠁢󠁥󠁮󠁧󠁿", ["👨‍👩‍👧", "👍🏽", "🇩🇪", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]),
        ("The café and the cafe\u0301s", ["café", "cafe\u0301s"]),
        ("ﬁne Ｆｕｌｌ №", []),
        ("½ or \ufdfa", ["½", "\ufdfa"]),
        ("soft\u00adhyphen zero\u200bwidth a\x00b \x01 \ufeff", []),
        ("a \ufffd b ▁ c", ["\ufffd", "▁"]),
        ("Müller: schön, groß", []),
        ("[1] a*b", ["[", "]", "*"]),
        ("漢 £5, 5€ 漢, 漢 é£1.5 b2€, €3c", ["漢 £5", "5€ 漢", "漢 é£1.5", "€", "€"]),
        ("", []),
    ],
)
def test_runs(shipped: UnknownCharacters, text: str, expected: list[str]) -> None:
    assert found(shipped, text) == expected


SIGNS = st.sampled_from(
    [*"aé漢£5.,🍕🏽 \n[’½\ufdfa\ufffd", "\u0301", "\u200d", "\u200b", "word ", "🇩🇪", ">>fr<<", "</s>"]
)


@given(st.lists(SIGNS, max_size=30).map("".join) | st.text(max_size=40))
def test_runs_are_in_order_and_what_is_left_is_known(shipped: UnknownCharacters, text: str) -> None:
    runs = shipped.find(text)
    assert all(text[start:end].strip() for start, end in runs)
    assert all(before.end <= after.start for before, after in pairwise(runs))
    left = text
    for start, end in reversed(runs):
        left = f"{left[:start]} {left[end:]}"
    assert not shipped.find(left), "nothing unknown is left"


@pytest.mark.parametrize(
    "part", ["漢", "漢 ", "漢 a ", "é", "aé", "£1", "🍕5a", "e\u0301", "\u0301", "\u00ad", "1.", "👩‍"]
)
def test_it_takes_linear_time(shipped: UnknownCharacters, part: str) -> None:
    def seconds(number: int) -> float:
        text = part * number
        start = time.thread_time()
        shipped.find(text)
        return time.thread_time() - start

    few = min(seconds(1_000) for _ in range(3))
    assert any(seconds(16_000) < 16 * 4 * few + 0.0125 for _ in range(3))  # a machine may stall
