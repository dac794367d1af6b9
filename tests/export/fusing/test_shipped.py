"""The fused graphs of the shipped bundles: made from the plain ones, whose weights they share."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from export.fusing.bundle import write_fused
from service.bundle.checksums import check_intact
from service.bundle.manifest import Manifest
from tests.references.fused_model import FusedDecoder, FusedEncoder
from tests.servers import REPOSITORY

# Of log-probabilities: what one activation costs that lies in the middle between two levels and is rounded differently.
TIE = 0.5


@pytest.fixture(scope="module", params=["en-de", "en-hi"])
def bundle(request: pytest.FixtureRequest) -> Path:
    return REPOSITORY / "models" / str(request.param) / "1"


@pytest.fixture(scope="module")
def manifest(bundle: Path) -> Manifest:
    return Manifest.load(bundle)


def test_a_bundle_grows_by_less_than_100_kb(bundle: Path, manifest: Manifest) -> None:
    check_intact(bundle, manifest)
    fused = (manifest.graphs.fused_encoder, manifest.graphs.fused_decoder)
    assert 0 < sum((bundle / name).stat().st_size for name in fused) < 100_000


def test_they_are_what_the_plain_graphs_give(bundle: Path, manifest: Manifest, tmp_path: Path) -> None:
    for name in manifest.graphs.plain:
        shutil.copyfile(bundle / name, tmp_path / name)
    assert write_fused(tmp_path, manifest) == manifest.graphs
    for name in (manifest.graphs.fused_encoder, manifest.graphs.fused_decoder):
        assert (tmp_path / name).read_bytes() == (bundle / name).read_bytes()


def test_offsets_lead_to_the_weights(bundle: Path, manifest: Manifest) -> None:
    graphs = manifest.graphs
    for fused, plain in ((graphs.fused_encoder, graphs.encoder), (graphs.fused_decoder, graphs.decoder_step)):
        stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(bundle / plain).graph.initializer}
        tensors = onnx.load(bundle / fused, load_external_data=False).graph.initializer
        external = [t for t in tensors if t.data_location == onnx.TensorProto.EXTERNAL]
        arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load(bundle / fused).graph.initializer}
        assert len(external) > 30
        for tensor in external:
            assert {entry.key: entry.value for entry in tensor.external_data}["location"] == plain
        for name, array in arrays.items():  # in a graph of the same names
            if name.endswith(("self_attention.output.weight", "feed_forward.inner.weight")):
                np.testing.assert_array_equal(array, stored[f"{name}.int8"])


def test_the_golden_translations_follow(bundle: Path, manifest: Manifest) -> None:
    """Each token is the plain graphs' or, given the same tokens before it, as good as."""
    graphs = manifest.graphs
    encoder, decoder = FusedEncoder(bundle / graphs.fused_encoder), FusedDecoder(bundle / graphs.fused_decoder)
    num_tokens, num_equal = 0, 0
    for golden in manifest.golden:
        row = decoder.start(encoder.encode(golden.source_ids))
        fed = (manifest.tokenizer.decoder_start_id, *golden.output_ids[:-1])
        for before, token in zip(fed, golden.output_ids, strict=True):
            log_probs = row.log_probs(before)
            assert log_probs[token] > log_probs.max() - TIE
            num_tokens, num_equal = num_tokens + 1, num_equal + int(log_probs.argmax() == token)
    assert num_equal >= 0.98 * num_tokens > 100
