"""Error messages about SentencePiece files."""

from pathlib import Path

import pytest

from export.importers.sentencepiece_file import read_facts, read_pieces
from tests.tokenizer_folders import ENGLISH, train_sentencepiece


def test_facts(tmp_path: Path) -> None:
    (tmp_path / "a.spm").write_bytes(train_sentencepiece((*ENGLISH, "\ue000"), size=120))
    facts = read_facts(tmp_path / "a.spm")
    assert facts.size <= 120
    assert (facts.unk_id, facts.bos_id, facts.eos_id, facts.pad_id) == (0, 1, 2, -1)
    assert facts.reserved_symbols == ("\ue000",)


def test_pieces_and_character_map(tmp_path: Path) -> None:
    data = train_sentencepiece(ENGLISH, size=80)
    (tmp_path / "a.spm").write_bytes(data)
    model = read_pieces(tmp_path / "a.spm")
    assert model.pieces[:3] == ("<unk>", "<s>", "</s>")
    assert len(model.pieces) == read_facts(tmp_path / "a.spm").size
    assert len(model.character_map) > 100_000
    assert model.character_map in data


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
