"""`export fuse`: what it adds to an int8 bundle, what it leaves, and what it refuses."""

import dataclasses
import shutil
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from export.bundle_writer import checksums
from export.cli import main
from service.bundle.checksums import check_intact, file_sha256
from service.bundle.manifest import MANIFEST_NAME, Manifest
from tests.servers import REPOSITORY

SHIPPED = REPOSITORY / "models" / "en-hi" / "1"


def run(bundle: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["fuse", str(bundle)])
    return result.exit_code, result.stderr


def contents(bundle: Path) -> dict[str, str]:
    return {path.name: file_sha256(path) for path in bundle.iterdir()}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return the shipped bundle as it was before there were fused graphs."""
    bundle = Path(shutil.copytree(SHIPPED, tmp_path / "1"))
    manifest = Manifest.load(bundle)
    for name in (manifest.graphs.fused_encoder, manifest.graphs.fused_decoder):
        (bundle / name).unlink()
    graphs = dataclasses.replace(manifest.graphs, fused_encoder="", fused_decoder="")
    dataclasses.replace(manifest, graphs=graphs, checksums=checksums(bundle)).save(bundle)
    check_intact(bundle, Manifest.load(bundle))
    return bundle


def test_only_the_fused_graphs_are_added(plain: Path) -> None:
    before = contents(plain)
    code, said = run(plain)
    assert (code, said.split()[0]) == (0, "fuse"), said
    assert contents(plain) == contents(SHIPPED)
    assert {name: digest for name, digest in contents(plain).items() if name in before}.items() ^ before.items() == {
        (MANIFEST_NAME, digest) for digest in (before[MANIFEST_NAME], contents(SHIPPED)[MANIFEST_NAME])
    }
    assert run(plain)[0] == 0
    assert contents(plain) == contents(SHIPPED)


def test_only_intact_int8_bundles_are_taken(plain: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere") == (
        2, f"export: {tmp_path}/nowhere holds no manifest.json; write a bundle with 'make export'.\n"
    )  # fmt: skip
    manifest = Manifest.load(plain)
    dataclasses.replace(manifest, precision="float32").save(plain)
    before = contents(plain)
    code, said = run(plain)
    assert code == 2
    assert "is float32; only an int8 bundle has fused graphs." in said
    manifest.save(plain)
    (plain / manifest.tokenizer.file).unlink()
    code, said = run(plain)
    assert code == 2
    assert "is missing" in said
    assert contents(plain).keys() == before.keys() - {manifest.tokenizer.file}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Relu", "Reciprocal", "The feed-forward layers have an unknown activation, of ['Reciprocal']."),
        ("LayerNormalization", "Where", "The graph has 0 norms and 4 layers."),
        ("MultiHeadAttention", "GroupQueryAttention", "The graph has no MultiHeadAttention."),
    ],
)
def test_a_graph_of_another_form_leaves_the_bundle_as_it_was(plain: Path, old: str, new: str, message: str) -> None:
    manifest = Manifest.load(plain)
    path = plain / manifest.graphs.encoder
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == old:
            node.op_type = new
    onnx.save(model, path)
    dataclasses.replace(manifest, checksums=checksums(plain)).save(plain)
    before = contents(plain)
    code, said = run(plain)
    assert (code, said) == (1, f"export: {plain} can't be fused, nothing was written: {message}\n")
    assert contents(plain) == before
