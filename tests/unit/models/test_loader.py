"""Loading a bundle and its self-test, with the real engine."""

import dataclasses
import json
import shutil
import time
from collections.abc import Callable
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

Spoil = Callable[[Path], object]


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


def changed(part: str, **fields: Any) -> Spoil:
    """Return a change of a part of the manifest, or of each if it has several."""

    def spoil(directory: Path) -> None:
        found = getattr(Manifest.load(directory), part)
        several = found if isinstance(found, tuple) else (found,)
        new = tuple(dataclasses.replace(each, **fields) for each in several)
        change(directory, **{part: new if isinstance(found, tuple) else new[0]})

    return spoil


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


def without_a_graph(directory: Path) -> None:
    (directory / "encoder.onnx").write_bytes(b"no graph")
    check_in(directory, "encoder.onnx")


def with_alignments_of_sums(directory: Path) -> None:
    graph = onnx.load(directory / "alignment.onnx")
    (heads,) = (node for node in graph.graph.node if node.op_type == "ReduceMean")
    heads.op_type = "ReduceSum"  # of two heads: rows add up to 2
    onnx.save(graph, directory / "alignment.onnx")
    check_in(directory, "alignment.onnx")


def of_another_device(directory: Path) -> None:
    (directory / "encoder.onnx").unlink()  # nothing is read
    change(directory, precision="float16")


def larger_than_the_memory(directory: Path) -> None:
    changed("limits", max_output_tokens=1_000_000)(directory)
    changed("model", num_heads=1_000, head_size=10_000)(directory)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda directory: change(directory, golden=with_a_wrong_one(Manifest.load(directory).golden)),
            r"fails its self-test: 1 of 3 golden",
        ),
        (changed("golden", text="keys"), "its tokenizer reads or writes 'keys' differently"),
        (changed("golden", target_language_code="fr"), "'fr'"),
        (changed("limits", max_source_tokens=5), "fails its self-test"),
        (without_a_graph, r"encoder\.onnx"),
        (of_another_device, r"float16 bundle, which device 'cpu' can't run .* choose device 'cuda'"),
        (larger_than_the_memory, r"memory or threads ran out \(Unable to allocate"),
        (with_alignments_of_sums, "its alignments are not probabilities"),
        (changed("graphs", alignment="missing.onnx"), "checksums lacks 'missing.onnx'"),
        (changed("graphs", alignment="../alignment.onnx"), "is outside the bundle"),
        (changed("graphs", alignment_layer=2), "alignment_layer is 2; the model has decoder layers 0 to 1"),
        (changed("graphs", alignment_layer=1), "different inputs from those that this service binds"),
        (changed("graphs", alignment="decoder_step.onnx"), "different inputs from those that this service binds"),
    ],
)
def test_what_does_not_work_here_is_refused(bundle: Path, spoil: Spoil, message: str) -> None:
    spoil(bundle)
    with pytest.raises(BundleError, match=message):
        load(bundle)


def test_one_in_five_may_differ(bundle: Path) -> None:
    golden = Manifest.load(bundle).golden
    change(bundle, golden=(*with_a_wrong_one(golden), *golden[1:]))
    assert load(bundle).engine.stop(patient(30))


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
    weights = (bundle / "weights").read_bytes()
    flipped = weights[:-1] + bytes([weights[-1] ^ 1])
    for damaged in (flipped, weights[:-1], b""):  # shorter ones can't be read either, beside the check
        (bundle / "weights").write_bytes(damaged)
        with pytest.raises(BundleError, match="is damaged: weights does not match its checksum"):
            load(bundle)
    (bundle / "weights").write_bytes(weights)
    del checksums["weights"]
    change(bundle, checksums=checksums)
    with pytest.raises(BundleError, match="weights in 'weights', which is not a file of the bundle with a checksum"):
        load(bundle)
