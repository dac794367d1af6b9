"""Error messages about SentencePiece files."""

from pathlib import Path

import pytest

from export.importers.sentencepiece_file import read_facts
from tests.tokenizer_folders import ENGLISH, train_sentencepiece


def test_a_file_cut_anywhere_is_refused_even_between_two_pieces(tmp_path: Path) -> None:
    data = train_sentencepiece(ENGLISH, size=80)
    reasons = set()
    normalizer = data.rindex(b"nmt_nfkc")
    for length in range(0, normalizer, 3):
        (tmp_path / "a.spm").write_bytes(data[:length])
        with pytest.raises(ValueError, match="it is") as refusal:
            read_facts(tmp_path / "a.spm")
        reasons.add(str(refusal.value)[:14])
    assert reasons == {"it is not a Se", "it is cut shor"}
    with pytest.raises(ValueError, match="it is missing"):
        read_facts(tmp_path / "b.spm")
