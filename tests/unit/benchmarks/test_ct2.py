"""A comparison is meaningful only if the peer really runs our weights."""

from pathlib import Path

from benchmarks.peers.ct2 import CT2Peer
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.token_names import token_id, token_name
from benchmarks.workload import Task
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.references.ct2 import write_ct2
from tests.references.full_decode import decode_fully

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


def test_token_names_are_read_back() -> None:
    assert [token_id(token_name(index)) for index in (0, 8191)] == [0, 8191]
