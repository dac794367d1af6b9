"""A comparison is meaningful only if the peers really run our weights, and give our tokens."""

import json
from pathlib import Path

import ctranslate2
from sentencepiece import SentencePieceProcessor

from benchmarks.peers.ct2 import CT2Peer
from benchmarks.peers.libretranslate import write_package
from benchmarks.peers.peer import PeerSettings
from benchmarks.workload import Task
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.references.ct2 import write_ct2
from tests.references.full_decode import decode_fully

TOKENIZER = Path("checkpoints/en-de/tokenizer.model")
MAX_TOKENS = 20


def test_ctranslate2_gives_our_tokens_on_our_weights(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(), seed=0, end_bias=2.5)
    sources = random_sources(model.config.source_vocabulary_size, [3, 9, 5, 14])
    write_ct2(model, tmp_path)
    expected = []
    for source in sources:
        output = decode_fully(model, source, (), (), MAX_TOKENS).token_ids
        expected.append([token for token in output if token != model.config.eos_id])
    task = Task((tuple(sources),), beam_size=1, max_output_tokens=MAX_TOKENS)
    assert len({tuple(output) for output in expected}) == len(sources)
    for threads in ((1, 2), (2, 1)):
        options = {"inter_threads": threads[0], "intra_threads": threads[1]}
        peer = CT2Peer(PeerSettings("ctranslate2", "float32", str(tmp_path), options))
        assert peer.translate(sources, task) == expected
        peer.close()


def test_a_fixed_output_length_is_kept(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(), seed=0, end_bias=2.5)
    write_ct2(model, tmp_path)
    peer = CT2Peer(PeerSettings("ctranslate2", "float32", str(tmp_path), {"inter_threads": 1, "intra_threads": 1}))
    sources = random_sources(model.config.source_vocabulary_size, [3, 9])
    outputs = peer.translate(sources, Task((tuple(sources),), 4, MAX_TOKENS, MAX_TOKENS))
    assert [len(output) for output in outputs] == [MAX_TOKENS, MAX_TOKENS]
    peer.close()


def test_a_package_translates_pieces_as_our_model_does(tmp_path: Path) -> None:
    text = "Where is the train station?"
    processor = SentencePieceProcessor(model_file=str(TOKENIZER))
    size = processor.get_piece_size()
    model = tiny_model(tiny_config(source_vocabulary_size=size, target_vocabulary_size=size), seed=0, end_bias=2.5)
    write_ct2(model, tmp_path / "ct2")
    write_package(tmp_path / "ct2", TOKENIZER, tmp_path / "en_de")
    source = (*processor.encode(text), model.config.eos_id)
    expected = decode_fully(model, source, (), (), MAX_TOKENS).token_ids
    translator = ctranslate2.Translator(str(tmp_path / "en_de" / "model"), device="cpu")
    # As Argos does: pieces, without an end.
    [result] = translator.translate_batch(
        [processor.encode(text, out_type=str)], beam_size=1, max_decoding_length=MAX_TOKENS
    )
    assert [processor.piece_to_id(piece) for piece in result.hypotheses[0]] == [
        token for token in expected if token != model.config.eos_id
    ]
    about = json.loads((tmp_path / "en_de" / "metadata.json").read_text())
    assert (about["from_code"], about["to_code"]) == ("en", "de")
    assert (tmp_path / "en_de" / "sentencepiece.model").read_bytes() == TOKENIZER.read_bytes()
