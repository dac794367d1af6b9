import lzma
from pathlib import Path

import pytest

from export.training.corpus import Pair, hold_out, read_pairs


def test_reads_plain_and_compressed_files_alike(tmp_path: Path) -> None:
    text = "a cat\teine Katze\ttatoeba\nline\u2028separators\tsind keine\n"
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(text.encode()))
    expected = [Pair("a cat", "eine Katze", "tatoeba"), Pair("line\u2028separators", "sind keine", "")]
    assert read_pairs(tmp_path / "a.tsv") == expected
    assert read_pairs(tmp_path / "a.tsv.xz") == expected


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nno tab\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        read_pairs(tmp_path / "a.tsv")


def test_no_held_out_sentence_is_trained_on() -> None:
    pairs = [Pair(f"s{i % 50}", f"t{i}", "") for i in range(100)]  # every source stands twice
    training, validation = hold_out(pairs, 10, seed=0)
    assert len(validation) == 10
    assert not {pair.source for pair in training} & {pair.source for pair in validation}
