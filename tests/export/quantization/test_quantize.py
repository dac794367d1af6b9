"""`quantize`: an int8 bundle that the engine runs, its loss of accuracy, and what it rejects."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from export.cli import main
from export.engine_decode import open_engine
from export.fusing.bundle import FUSED_DECODER, FUSED_ENCODER
from export.golden_texts import GOLDEN_TEXTS
from export.graphs.execution import AlignmentRun, GraphPair
from export.quantize import quantize
from service.bundle.checksums import check_intact, mismatches
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs
from service.domain.options import DecodingOptions
from service.models.repository import find_bundles


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "lines.tsv"
    texts = [*GOLDEN_TEXTS, *map(str.lower, GOLDEN_TEXTS), *map(str.upper, GOLDEN_TEXTS)]
    path.write_text("".join(f"{text}\t{text[::-1]}\tgolden\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def quantized(
    exported: tuple[Path, Manifest], lines: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("int8") / "tiny" / "1"
    return directory, quantize(exported[0], directory, lines, name="tiny-int8")


def test_the_bundle_is_complete_and_says_what_it_costs(
    quantized: tuple[Path, Manifest], exported: tuple[Path, Manifest]
) -> None:
    directory, written = quantized
    manifest = Manifest.load(directory)
    assert manifest == written
    assert mismatches(directory, manifest.checksums) == []
    assert manifest.precision == "int8"
    assert exported[1].graphs.files == manifest.graphs.plain
    assert manifest.graphs.files == (*manifest.graphs.plain, FUSED_ENCODER, FUSED_DECODER)
    check_intact(directory, manifest)
    assert manifest.checkpoint_sha256 == exported[1].checkpoint_sha256
    assert {"bleu", "bleu_float32", "chrf", "chrf_float32", "identical", "cpu"} <= manifest.quality.keys()
    assert 0.0 <= manifest.quality["identical"] <= 1.0


def test_a_root_holds_both_forms_under_names_of_their_own(
    quantized: tuple[Path, Manifest], exported: tuple[Path, Manifest], tmp_path: Path
) -> None:
    shutil.copytree(exported[0], tmp_path / "tiny" / "1")
    other = Path(shutil.copytree(quantized[0], tmp_path / "tiny-int8" / "1"))
    found = {bundle.name: bundle.manifest.precision for bundle in find_bundles(tmp_path)}
    assert found == {"tiny": "float32", "tiny-int8": "int8"}
    dataclasses.replace(quantized[1], name="tiny").save(other)
    with pytest.raises(BundleError, match="tiny"):
        find_bundles(tmp_path)


def test_every_large_weight_is_in_8_bits_and_stored_once(quantized: tuple[Path, Manifest]) -> None:
    directory, manifest = quantized
    assert len(manifest.graphs.plain) == 3
    for name in manifest.graphs.plain:
        graph = onnx.load(directory / name).graph
        sizes = {tensor.name: (tensor.data_type, int(np.prod(tensor.dims))) for tensor in graph.initializer}
        matrices = {key for key, (_, size) in sizes.items() if size > 1500 and "positions" not in key}
        assert matrices
        assert all(sizes[key][0] == onnx.TensorProto.INT8 for key in matrices), matrices
        contents = [t.raw_data for t in graph.initializer if t.data_type == onnx.TensorProto.INT8]
        assert len(contents) == len(set(contents))
        assert not [node.name for node in graph.node if node.op_type in ("Gemm", "MatMul") and len(node.input) > 2]


def test_log_probs_are_close_to_float32(quantized: tuple[Path, Manifest], exported: tuple[Path, Manifest]) -> None:
    """But not equal, or nothing was quantized."""
    size = exported[1].model.vocabulary_size
    sources = [(5, 9, 20, 31, 2), (7, 2), (12, 40, 41, 42, 43, 44, 2)]
    tokens = np.array([2, 2, 2])
    tables = []
    for directory, manifest in (exported, quantized):
        pair = GraphPair(directory / manifest.graphs.encoder, directory / manifest.graphs.decoder_step, manifest.model)
        ids, log_probs = pair.start(sources, 1, 4).candidates(tokens, size)
        by_token = np.empty_like(log_probs)
        np.put_along_axis(by_token, ids, log_probs, axis=1)
        tables.append(np.where(np.isfinite(by_token), by_token, 0.0))
    error = np.abs(tables[0] - tables[1]).mean()
    spread = tables[0].max() - tables[0][tables[0] < 0].min()
    assert 0.0 < error < 0.05 * spread


def test_alignments_are_close_to_float32(quantized: tuple[Path, Manifest], exported: tuple[Path, Manifest]) -> None:
    """But not equal, or nothing was quantized."""
    pairs = [(golden.source_ids, golden.output_ids) for golden in exported[1].golden]
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    given = []
    for directory, manifest in (exported, quantized):
        graphs = manifest.graphs
        pair = GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, manifest.model)
        given.append(AlignmentRun(directory / graphs.alignment, pair).attention(sources, targets, 1))
    assert quantized[1].graphs.plain == exported[1].graphs.plain
    assert quantized[1].graphs.alignment_layer == exported[1].graphs.alignment_layer
    errors = np.concatenate([np.abs(a - b).ravel() for a, b in zip(*given, strict=True)])
    assert 0.0 < errors.mean() < 0.05
    assert 0.0 <= quantized[1].quality["alignment"] <= 1.0


def test_a_bundle_without_alignments_stays_without(
    exported: tuple[Path, Manifest], lines: Path, tmp_path: Path
) -> None:
    old = Path(shutil.copytree(exported[0], tmp_path / "old"))
    (old / exported[1].graphs.alignment).unlink()
    checksums = {name: each for name, each in exported[1].checksums.items() if name != exported[1].graphs.alignment}
    dataclasses.replace(exported[1], graphs=Graphs(), checksums=checksums).save(old)
    code, errors = run(old, "--calibration", lines, "--output", tmp_path / "int8", "--name", "by hand")
    assert code == 0, errors
    manifest = Manifest.load(tmp_path / "int8")
    assert manifest.name == "by hand"
    assert manifest.graphs.alignment == ""
    assert manifest.quality["alignment"] is None
    assert not (tmp_path / "int8" / "alignment.onnx").exists()


def test_greedy_and_beam_share_the_graph(quantized: tuple[Path, Manifest]) -> None:
    """The branch that computes scores runs when requested, beside rows that do not request it."""
    directory, manifest = quantized
    sources = [golden.source_ids for golden in manifest.golden]
    greedy = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=32)
    scored = DecodingOptions(
        beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=32, return_scores=True
    )
    with open_engine(directory, manifest) as engine:
        plain = engine.decode([(source, ()) for source in sources], greedy)
        with_scores = engine.decode([(source, ()) for source in sources], scored)
    assert [best.token_ids for best, *_ in plain] == [best.token_ids for best, *_ in with_scores]
    assert all(best.score < 0 for best, *_ in with_scores)


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["quantize", *map(str, arguments)])
    return result.exit_code, result.stderr


def refused(output: Path, *arguments: object) -> str:
    """Return the one line of a run that must write nothing."""
    code, errors = run(*arguments, "--output", output)
    assert code == 2, errors
    assert not output.exists()
    assert list(output.parent.glob(f".{output.name}*")) == []
    (line,) = errors.splitlines()
    return line


def test_only_intact_float32_bundles_are_taken(
    quantized: tuple[Path, Manifest], exported: tuple[Path, Manifest], lines: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert "is int8; only a float32 bundle" in refused(out, quantized[0], "--calibration", lines)
    assert "holds no manifest.json" in refused(out, tmp_path / "nowhere", "--calibration", lines)
    damaged = Path(shutil.copytree(exported[0], tmp_path / "damaged"))
    with (damaged / exported[1].graphs.encoder).open("ab") as file:
        file.write(b"x")
    assert "is damaged: encoder.onnx" in refused(out, damaged, "--calibration", lines)


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 256])
@pytest.mark.parametrize("command", ["quantize", "convert"])
def test_a_name_that_no_server_takes_is_refused_before_the_work(command: str, name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, [command, "nowhere", "--output", str(tmp_path / "out"), "--name", name, "--calibration", "nowhere"]
    )
    assert result.exit_code == 2
    assert "is not a valid name; allowed are 1 to 255 printable bytes" in " ".join(result.stderr.split())


def test_calibration_lines_have_to_be_there(exported: tuple[Path, Manifest], tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("one\tein\n" * 31 + "no reference\n" + "\tno source\n", encoding="utf-8")
    out = tmp_path / "out"
    assert "has 31 usable lines" in refused(out, exported[0], "--calibration", few)
    assert "can't be read" in refused(out, exported[0], "--calibration", tmp_path / "missing.tsv")
    few.write_bytes(b"\xff\xfe\tx\n" * 64)
    assert "can't be read" in refused(out, exported[0], "--calibration", few)


def test_what_is_no_bundle_is_not_replaced(exported: tuple[Path, Manifest], lines: Path, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("keep me")
    code, errors = run(exported[0], "--calibration", lines, "--output", tmp_path)
    assert code == 2
    assert "is not a bundle" in errors
    assert (tmp_path / "precious.txt").read_text() == "keep me"
