"""An Argos package is our model only if CTranslate2 gives our tokens from pieces."""

import json
from pathlib import Path

import ctranslate2
from sentencepiece import SentencePieceProcessor

from benchmarks.peers.libretranslate import write_package
from tests.export.tiny_models import tiny_config, tiny_model
from tests.references.ct2 import write_ct2
from tests.references.full_decode import decode_fully

TOKENIZER = Path("checkpoints/en-de/tokenizer.model")
TEXT = "Where is the train station?"
MAX_TOKENS = 20


def test_a_package_translates_pieces_as_our_model_does(tmp_path: Path) -> None:
    processor = SentencePieceProcessor(model_file=str(TOKENIZER))
    size = processor.get_piece_size()
    model = tiny_model(tiny_config(source_vocabulary_size=size, target_vocabulary_size=size), seed=0, end_bias=2.5)
    write_ct2(model, tmp_path / "ct2")
    write_package(tmp_path / "ct2", TOKENIZER, tmp_path / "en_de")
    source = (*processor.encode(TEXT), model.config.eos_id)
    expected = decode_fully(model, source, (), (), MAX_TOKENS).token_ids
    translator = ctranslate2.Translator(str(tmp_path / "en_de" / "model"), device="cpu")
    # As Argos does: pieces, without an end.
    [result] = translator.translate_batch(
        [processor.encode(TEXT, out_type=str)], beam_size=1, max_decoding_length=MAX_TOKENS
    )
    assert [processor.piece_to_id(piece) for piece in result.hypotheses[0]] == [
        token for token in expected if token != model.config.eos_id
    ]
    about = json.loads((tmp_path / "en_de" / "metadata.json").read_text())
    assert (about["from_code"], about["to_code"]) == ("en", "de")
    assert (tmp_path / "en_de" / "sentencepiece.model").read_bytes() == TOKENIZER.read_bytes()
