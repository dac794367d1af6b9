"""`convert`: what it writes, and what it rejects."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file, save_file

from export.engine_decode import greedy_options, open_engine
from export.graphs.weights_file import WEIGHTS
from export.importers.native.folder import CHECKPOINT_NAME, CONFIG_NAME, TOKENIZER_NAME, WEIGHTS_NAME
from service.bundle.checksums import file_sha256, mismatches
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.engine.config import EngineConfig
from service.engine.generate import sequences_of
from service.engine.runtime.runners import open_runners
from service.engine.runtime.session import SessionConfig
from tests.export.conftest import Converted
from tests.export.folders import edit, refused
from tests.export.tiny_checkpoint import VOCABULARY_SIZE


def test_bundle_is_complete(exported: tuple[Path, Manifest], checkpoint: Path) -> None:
    directory, manifest = exported
    assert {path.name for path in directory.iterdir()} == {*manifest.checksums, MANIFEST_NAME}
    assert mismatches(directory, manifest.checksums) == []
    assert manifest.name == "tiny"
    assert manifest.checkpoint_sha256 == file_sha256(checkpoint / WEIGHTS_NAME)
    assert manifest.model.vocabulary_size == VOCABULARY_SIZE
    assert manifest.suppressed_ids == (0, 1, 3)
    assert manifest.tokenizer.reserved_symbols == tuple("\ue000\ue001\ue002\ue003")
    assert manifest.verification["max_relative_error"] < 1e-3
    assert manifest.tools["torch"].split("+")[0] == torch.__version__.split("+")[0]


def test_golden_outputs_are_varied(exported: tuple[Path, Manifest]) -> None:
    """Otherwise tests that compare them would prove little."""
    outputs = {golden.output_ids for golden in exported[1].golden}
    assert len(outputs) >= 5
    assert all(output[-1] == 2 for output in outputs)
    assert len({len(output) for output in outputs}) >= 4


def test_float16_graphs_keep_their_memory_in_float16(
    exported: tuple[Path, Manifest], conversions: Callable[[str], Converted]
) -> None:
    _, bundle, manifest = conversions("halves")
    assert manifest.precision == "float16"
    assert manifest.verification["max_relative_error"] > exported[1].verification["max_relative_error"]
    graph = onnx.load(bundle / manifest.graphs.decoder_step, load_external_data=False).graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    assert kinds["past_key.0"] == kinds["present_value.0"] == kinds["cross_key.0"] == onnx.TensorProto.FLOAT16
    assert kinds["next_log_probs"] == onnx.TensorProto.FLOAT


def test_a_change_of_the_file_of_weights_changes_nothing_of_what_is_served(
    exported: tuple[Path, Manifest], tmp_path: Path
) -> None:
    """If it were mapped, the process would end: it is shorter then."""
    directory, manifest = Path(shutil.copytree(exported[0], tmp_path / "copy")), exported[1]
    golden = [each for each in manifest.golden if each.output_ids[-1] == manifest.tokenizer.eos_id]
    pairs = [(each.source_ids, each.output_ids[:-1]) for each in golden]
    aligner = open_runners(directory, manifest, EngineConfig(max_slots=1), SessionConfig(intra_op_threads=1)).aligner
    assert aligner is not None
    aligned = aligner.align(pairs)
    with open_engine(directory, manifest) as engine:
        (directory / WEIGHTS).write_bytes(b"")
        sequences = sequences_of([(source, ()) for source, _ in pairs], greedy_options(manifest))
        assert [best.token_ids for best, *_ in engine.generate(sequences)] == [output for _, output in pairs]
    for before, after in zip(aligned, aligner.align(pairs), strict=True):
        np.testing.assert_array_equal(before, after)


def test_graphs_name_no_path_of_this_machine(exported: tuple[Path, Manifest]) -> None:
    directory, manifest = exported
    for name in (manifest.graphs.encoder, manifest.graphs.decoder_step):
        content = (directory / name).read_bytes()
        for text in (b".py", b"stack_trace", str(Path(__file__).parents[2]).encode()):
            assert text not in content, (name, text)
    assert b"packed.weight" in (directory / manifest.graphs.decoder_step).read_bytes()  # shows that names can be found


@pytest.fixture
def broken(checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint, tmp_path / "broken"))


def test_all_problems_are_reported_at_once(broken: Path) -> None:
    weights = load_file(broken / WEIGHTS_NAME)
    weights["nobody.knows"] = torch.zeros(3)
    weights["decoder.layers.0.feed_forward.inner.weight"] = torch.zeros(2, 2)
    weights["encoder.layers.1.feed_forward.outer.bias"][0] = torch.nan
    del weights["encoder.final_norm.weight"]
    save_file(weights, broken / WEIGHTS_NAME)
    edit(broken / CHECKPOINT_NAME, max_output_tokens=1000)
    line = refused(broken)
    for expected in (
        "nobody.knows is unexpected",
        "decoder.layers.0.feed_forward.inner.weight has shape (2, 2)",
        "encoder.layers.1.feed_forward.outer.bias holds NaN",
        "encoder.final_norm.weight is missing",
        "max_output_tokens is 1000, the model has 80 positions",
    ):
        assert expected in line


@pytest.mark.parametrize("name", [CONFIG_NAME, CHECKPOINT_NAME, WEIGHTS_NAME, TOKENIZER_NAME])
def test_missing_and_damaged_files_are_named(broken: Path, name: str) -> None:
    (broken / name).write_bytes(b"\x00garbage")
    assert name in refused(broken)
    (broken / name).unlink()
    assert f"{name}" in refused(broken)


def test_unknown_options_are_named(broken: Path) -> None:
    edit(broken / CONFIG_NAME, rotary=True)
    edit(broken / CHECKPOINT_NAME, surprise=1, max_source_tokens="many")
    line = refused(broken)
    for expected in ("rotary", "surprise", "max_source_tokens is 'many'"):
        assert expected in line


def test_tokenizer_of_another_model_is_noticed(broken: Path) -> None:
    edit(broken / CONFIG_NAME, source_vocabulary_size=300, target_vocabulary_size=300)
    line = refused(broken)
    assert f"{TOKENIZER_NAME} has {VOCABULARY_SIZE} pieces" in line
    assert "has shape" in line
