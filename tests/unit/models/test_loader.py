"""Loading a bundle and its self-test, with the real engine."""

import dataclasses
import json
import shutil
import time
from pathlib import Path
from typing import Any

import onnx
import pytest

from service.bundle.checksums import file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence
from service.models.loaded_model import InferenceStatistics
from service.models.loader import load_model
from tests.found_bundles import find_bundles
from tests.patience import patient
from tests.unit.engine.recorder import Recorder


@pytest.fixture
def bundle(tiny_bundle: Path, tmp_path: Path) -> Any:
    """Return a copy that a test may damage."""
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


def load(directory: Path, listener: Any = None, **limits: Any) -> Any:
    (found,) = find_bundles(directory)
    return load_model(
        found,
        EngineConfig(**limits),
        SessionConfig(intra_op_threads=1),
        listener if listener else Recorder(),
        InferenceStatistics(),
    )


def change(directory: Path, **fields: Any) -> None:
    """Change the manifest."""
    dataclasses.replace(Manifest.load(directory), **fields).save(directory)


def rewritten(golden: Any, **fields: Any) -> Any:
    return tuple(dataclasses.replace(each, **fields) for each in golden)


def with_a_wrong_one(golden: Any) -> Any:
    wrong = dataclasses.replace(golden[0], output_ids=golden[1].output_ids, translation=golden[1].translation)
    return (wrong, *golden[1:])


def check_in(directory: Path, name: str) -> None:
    """Put the checksum of a file as it is now into the manifest."""
    change(directory, checksums=Manifest.load(directory).checksums | {name: file_sha256(directory / name)})


def test_a_loaded_model_translates_its_golden_sentences(bundle: Path) -> None:
    listener = Recorder()
    model = load(bundle, listener)
    try:
        options = dataclasses.replace(model.default_options, beam_size=1)
        golden = model.manifest.golden[0]
        sequence = Sequence(golden.source_ids, options, time.monotonic())
        model.engine.submit([sequence])
        listener.wait(1)
        (update,) = listener.updates  # and none of the self-test's
        assert model.tokenizer.decode(update.hypotheses[0].token_ids) == golden.translation
        limit = model.manifest.limits.max_output_tokens
        assert model.default_options == DecodingOptions(1, 1.0, 1, limit, max_length_ratio=3.0, max_repeats=10)
        own = dataclasses.replace(model.manifest.generation, options={"max_repeats": 4})
        manifest = dataclasses.replace(model.manifest, generation=own)
        bundle_of_its_own = dataclasses.replace(model.bundle, manifest=manifest)
        assert dataclasses.replace(model, bundle=bundle_of_its_own).default_options.max_repeats == 4
    finally:
        assert model.engine.stop(patient(30))


@pytest.mark.parametrize("limits", [{"max_slots": 1}, {"max_slots": 2, "max_waiting": 3}])
def test_small_engines_can_be_tested_too(bundle: Path, limits: Any) -> None:
    """A bundle may have more golden sentences than the queue has room for."""
    change(bundle, golden=Manifest.load(bundle).golden * 8)
    model = load(bundle, **limits)
    assert model.engine.snapshot().num_running == 0
    assert model.engine.stop(patient(30))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (with_a_wrong_one, r"fails its self-test: 1 of 3 golden"),
        (lambda golden: rewritten(golden, text="keys"), "its tokenizer reads or writes 'keys' differently"),
        (lambda golden: rewritten(golden, target_language_code="fr"), "'fr'"),
    ],
)
def test_golden_sentences_that_come_out_otherwise_fail_the_self_test(bundle: Path, changed: Any, message: str) -> None:
    change(bundle, golden=changed(Manifest.load(bundle).golden))
    with pytest.raises(BundleError, match=message):
        load(bundle)


def test_one_in_five_may_differ(bundle: Path) -> None:
    golden = Manifest.load(bundle).golden
    change(bundle, golden=(*with_a_wrong_one(golden), *golden[1:]))
    assert load(bundle).engine.stop(patient(30))


def test_a_golden_sentence_that_is_too_long_fails_the_self_test(bundle: Path) -> None:
    change(bundle, limits=dataclasses.replace(Manifest.load(bundle).limits, max_source_tokens=5))
    with pytest.raises(BundleError, match="fails its self-test"):
        load(bundle)


def test_graphs_that_are_none_are_refused_even_with_a_right_checksum(bundle: Path) -> None:
    (bundle / "encoder.onnx").write_bytes(b"no graph")
    check_in(bundle, "encoder.onnx")
    with pytest.raises(BundleError, match=r"encoder\.onnx"):
        load(bundle)


def test_a_precision_that_the_device_does_not_run_is_refused_before_anything_is_read(bundle: Path) -> None:
    (bundle / "encoder.onnx").unlink()
    change(bundle, precision="float16")
    with pytest.raises(BundleError, match=r"float16 bundle, which device 'cpu' can't run .* choose device 'cuda'"):
        load(bundle)


def test_all_damage_is_named_at_once(bundle: Path) -> None:
    (bundle / "encoder.onnx").unlink()
    (bundle / "source.model").write_bytes(b"x")
    with pytest.raises(BundleError) as raised:
        load(bundle)
    assert "encoder.onnx is missing" in str(raised.value)
    assert "source.model does not match" in str(raised.value)


def test_it_aligns_if_the_bundle_can(bundle: Path) -> None:
    model = load(bundle)
    golden = model.manifest.golden[0]
    (attention,) = model.aligner.align([(golden.source_ids, golden.output_ids)])
    assert attention.shape == (len(golden.output_ids), len(golden.source_ids))
    assert model.engine.stop(patient(30))


def test_bundles_of_before_there_were_alignments_load(bundle: Path) -> None:
    document = json.loads((bundle / "manifest.json").read_text())
    assert document["graphs"].pop("alignment")
    assert document["graphs"].pop("alignment_layer") == 0
    del document["checksums"]["alignment.onnx"]
    (bundle / "manifest.json").write_text(json.dumps(document))
    (bundle / "alignment.onnx").unlink()
    model = load(bundle)
    assert model.aligner is None
    assert model.engine.stop(patient(30))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ({"alignment": "missing.onnx"}, "checksums lacks 'missing.onnx'"),
        ({"alignment": "../alignment.onnx"}, "is outside the bundle"),
        ({"alignment_layer": 2}, "alignment_layer is 2; the model has decoder layers 0 to 1"),
        ({"alignment_layer": 1}, "other inputs than this service binds"),
        ({"alignment": "decoder_step.onnx"}, "other inputs than this service binds"),
    ],
)
def test_what_the_manifest_says_of_alignments_is_checked(bundle: Path, graphs: Any, message: str) -> None:
    document = json.loads((bundle / "manifest.json").read_text())
    document["graphs"] |= graphs
    (bundle / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(BundleError, match=message):
        load(bundle)


def test_an_alignment_graph_that_fails_is_found_when_loading(bundle: Path) -> None:
    graph = onnx.load(bundle / "alignment.onnx")
    (heads,) = (node for node in graph.graph.node if node.op_type == "ReduceMean")
    heads.op_type = "ReduceSum"  # of two heads: rows add up to 2
    onnx.save(graph, bundle / "alignment.onnx")
    check_in(bundle, "alignment.onnx")
    with pytest.raises(BundleError, match="its alignments are not probabilities"):
        load(bundle)


def test_a_model_larger_than_the_memory_is_refused(bundle: Path) -> None:
    manifest = Manifest.load(bundle)
    limits = dataclasses.replace(manifest.limits, max_output_tokens=1_000_000)
    shape = dataclasses.replace(manifest.model, num_heads=1_000, head_size=10_000)
    change(bundle, limits=limits, model=shape)
    with pytest.raises(BundleError, match=r"memory or threads ran out \(Unable to allocate"):
        load(bundle)


def test_what_native_code_raises_is_a_damaged_bundle(bundle: Path) -> None:
    manifest = Manifest.load(bundle)
    beyond = dataclasses.replace(manifest.golden[0], output_ids=(9_999_999,), translation="")
    tokenizer = dataclasses.replace(manifest.tokenizer, eos_id=9_999_999)
    change(bundle, golden=(beyond,), tokenizer=tokenizer)
    with pytest.raises(BundleError, match=r"bundle"):
        load(bundle)
    (bundle / "source.model").unlink()
    (bundle / "source.model").symlink_to("/proc/self/mem")  # a file that can be opened but not read
    with pytest.raises(BundleError, match=r"source\.model can't be read: Input/output error"):
        load(bundle)


def test_weights_beside_a_graph_are_checked_and_read(bundle: Path) -> None:
    graph = onnx.load(bundle / "encoder.onnx")
    onnx.save(graph, bundle / "encoder.onnx", save_as_external_data=True, location="weights", size_threshold=1024)
    checksums = {path.name: file_sha256(path) for path in bundle.iterdir() if path.name != "manifest.json"}
    assert "weights" in checksums
    change(bundle, checksums=checksums)
    assert load(bundle).engine.stop(patient(30))
    del checksums["weights"]
    change(bundle, checksums=checksums)
    with pytest.raises(BundleError, match="weights in 'weights', which is not a file of the bundle with a checksum"):
        load(bundle)
