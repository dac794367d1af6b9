"""`convert --precision int8`: a bundle that the engine runs, how near it is to the model, what is no quantization."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from export.architecture.stored import Array
from export.cli import main
from export.convert import convert
from export.engine_decode import open_engine, recorded_attention
from export.graphs.weights_file import WEIGHTS
from export.importers.native.importer import import_native
from export.quantization import fused_graphs
from export.quantization.agreement import Agreement
from export.verification_sentences import NUM_RANDOM_SENTENCES
from export.verification_texts import GOLDEN_TEXTS
from export.verify import VerificationError
from service.bundle.checksums import check_intact
from service.bundle.manifest import Manifest
from tests.export.folders import edit
from tests.export.stored_weights import check_stored_once
from tests.servers import REPOSITORY

EN_HI = REPOSITORY / "checkpoints" / "en-hi"
Weights = dict[str, Array]


@pytest.fixture(scope="module")
def quantized(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("int8") / "tiny" / "1"
    return directory, convert(checkpoint, directory, name="tiny-int8", precision="int8")


def test_the_bundle_is_complete_and_says_how_near_it_is(quantized: tuple[Path, Manifest]) -> None:
    directory, written = quantized
    manifest = Manifest.load(directory)
    assert manifest == written
    check_intact(directory, manifest)
    assert (manifest.precision, manifest.is_fused) == ("int8", True)
    said = manifest.verification["int8"]
    assert 0.5 < said["agreement"] <= 1.0
    assert said["with_rounded"] >= said["agreement"]
    assert manifest.golden
    assert 0.0 <= manifest.verification["alignment"]["share_found_int8"] <= 1.0


def test_every_weight_is_stored_once(quantized: tuple[Path, Manifest]) -> None:
    directory, manifest = quantized
    check_stored_once(directory, manifest.graphs.files)
    # A byte for each weight, however many graphs read it, and what is float32 or fills blocks.
    config = import_native(EN_HI).model.config
    shipped = (REPOSITORY / "models" / "en-hi" / "1" / WEIGHTS).stat().st_size
    num_weights = import_native(EN_HI).model.num_weights
    positions = 4 * config.d_model * (config.max_source_positions + config.max_target_positions)
    assert num_weights < shipped < 1.1 * num_weights + positions


def planted(name: str, change: Callable[[Array], Array]) -> Callable[[Weights], Weights]:
    return lambda weights: {**weights, name: change(weights[name])}


def swapped(weights: Weights) -> Weights:
    """Return weights of which two layers have changed places."""
    names = {"encoder.layers.1.": "encoder.layers.2.", "encoder.layers.2.": "encoder.layers.1."}
    return {next((new + key[len(old) :] for old, new in names.items() if key.startswith(old)), key): value
            for key, value in weights.items()}  # fmt: skip


FAULTS: dict[str, Callable[[Weights], Weights]] = {
    "a wrong scale": planted("encoder.layers.1.self_attention.output.weight", lambda weight: 1.3 * weight),
    "a transposed weight": planted("encoder.layers.1.self_attention.value.weight", lambda weight: weight.T.copy()),
    "a swapped layer": swapped,
    "another embedding": planted("encoder.embedding.tokens.weight", lambda weight: np.roll(weight, 1, axis=0)),
}


LESS = ("a wrong scale", "another embedding")  # than the others, which are left to `full`


@pytest.mark.parametrize(
    "fault", [fault if fault in LESS else pytest.param(fault, marks=pytest.mark.full) for fault in FAULTS]
)
def test_what_is_no_quantization_of_the_model_is_refused(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped model, with one fault in what is written."""
    made = fused_graphs.FusedNodes.__init__

    def spoilt(self: fused_graphs.FusedNodes, config: object, weights: Weights, file: object) -> None:
        made(self, config, FAULTS[fault](weights), file)  # type: ignore[arg-type]

    monkeypatch.setattr(fused_graphs.FusedNodes, "__init__", spoilt)
    with pytest.raises(VerificationError, match=r"not a quantization of the model|attention that the decoder records"):
        convert(EN_HI, tmp_path / "out", precision="int8")
    assert list(tmp_path.iterdir()) == []


def test_recorded_attention_of_other_heads_is_refused(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = fused_graphs.with_recorded
    monkeypatch.setattr(
        "export.quantize.with_recorded",
        lambda node, heads: recorded(node, heads and dataclasses.replace(heads, layer=1 - heads.layer)),
    )
    with pytest.raises(VerificationError, match="attention that the decoder records"):
        convert(checkpoint, tmp_path / "out", precision="int8")


def test_own_lines_are_compared_too(checkpoint: Path, quantized: tuple[Path, Manifest], tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("The house is small.\n\nWhere is it?\n", encoding="utf-8")
    manifest = convert(checkpoint, tmp_path / "out", precision="int8", check=tmp_path / "lines.txt")
    num_sentences = [each.verification["int8"]["num_sentences"] for each in (manifest, quantized[1])]
    assert num_sentences[0] == num_sentences[1] + 2
    arguments = ["convert", str(checkpoint), "--precision", "int8", "--output", str(tmp_path / "third")]
    result = CliRunner().invoke(main, [*arguments, "--check", str(tmp_path / "nowhere.txt")])
    assert result.exit_code == 2
    assert "nowhere.txt can't be converted: it is not a UTF-8 text file" in result.stderr


def test_without_english_own_lines_are_the_golden_ones(checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    edit(folder / "checkpoint.json", source_language_code="smi")
    lines = [text.lower() for text in GOLDEN_TEXTS[:5]]
    (tmp_path / "lines.txt").write_text("\n".join([*lines, lines[0]]), encoding="utf-8")
    manifest = convert(folder, tmp_path / "out", precision="int8", check=tmp_path / "lines.txt")
    assert manifest.golden
    assert {golden.text for golden in manifest.golden} <= set(lines)
    assert manifest.verification["int8"]["num_sentences"] == 6 + NUM_RANDOM_SENTENCES
    assert convert(folder, tmp_path / "other", precision="int8").golden[0].text in GOLDEN_TEXTS


@pytest.mark.parametrize(
    ("agreed", "divergence", "largest_gap", "is_poor"),
    [
        (0.9647, 0.0077, 0.1579, False),  # en-de
        (0.9763, 0.0127, 0.3102, False),  # de-en
        (0.888, 0.01, 18.0, True),  # the agreement and the gap of annalog 1.0.6
        (0.95, 0.01, 18.0, True),
        (0.95, 0.2, 0.5, True),
    ],
)
def test_a_poor_int8_is_one(agreed: float, divergence: float, largest_gap: float, is_poor: bool) -> None:
    assert Agreement(32, 600, agreed, divergence, largest_gap, 0.98, 0.004).is_poor == is_poor


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_a_poor_int8_is_told(
    threshold: float, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.quantization.agreement._LEAST_AGREEMENT", threshold)
    monkeypatch.setattr("export.quantization.agreement._MOST_DIVERGENCE", 9.0)
    said: list[str] = []
    convert(checkpoint, tmp_path / "out", precision="int8", say=said.append)
    warned = [line for line in said if "int8 is poor for this model or these texts" in line]
    assert len(warned) == (threshold > 1)


def test_alignments_come_from_the_decoder(quantized: tuple[Path, Manifest]) -> None:
    directory, manifest = quantized
    pairs = [(golden.source_ids, manifest.without_end(golden.output_ids)) for golden in manifest.golden]
    with open_engine(directory, manifest) as engine:
        for pair, attention in zip(pairs, recorded_attention(engine, manifest, pairs), strict=True):
            assert attention.shape == (len(pair[1]), len(pair[0]))
            np.testing.assert_allclose(attention.sum(axis=1), 1.0, atol=1e-5)
            np.testing.assert_array_equal(attention, recorded_attention(engine, manifest, [pair])[0])


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 256])
def test_a_name_that_no_server_takes_is_refused_before_the_work(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["convert", "nowhere", "--output", str(tmp_path / "out"), "--name", name])
    assert result.exit_code == 2
    assert "is not a valid name; allowed: 1 to 255 printable bytes" in " ".join(result.stderr.split())
