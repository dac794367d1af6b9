"""The real runner on tiny graphs in ONNX Runtime, against the same graphs run one row at a time without a cache."""

import functools
from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from pathlib import Path

import numpy as np
import pytest
from numpy import typing as npt

from service.domain.errors import EngineFailure
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob, RunTerminated
from service.engine.runtime import kernels
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import DeviceUnavailable, SessionConfig
from service.engine.runtime.shared_graph import num_workers
from service.engine.sequence import Sequence
from tests.unit.engine import reference_search
from tests.unit.engine.recorder import decode, new_sequence
from tests.unit.engine.runtime import half_precision
from tests.unit.engine.runtime.tiny_runners import (
    EOS_ID,
    MODEL,
    START_ID,
    Rows,
    StepByStep,
    load_on_device,
    load_on_host,
    load_sharded,
    manifest,
    write_graphs,
)

Load = Callable[[Path, EngineConfig], OnnxRunner]
NextLogProbs = Callable[[tuple[int, ...], tuple[int, ...]], npt.NDArray[np.float32]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graphs(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(params=[load_on_host, load_sharded, load_on_device])
def load(request: pytest.FixtureRequest) -> Load:
    loader: Load = request.param
    return loader


def scored(*source_ids: int, beam_size: int = 1, target_prefix_ids: tuple[int, ...] = ()) -> Sequence:
    return new_sequence(source_ids, beam_size=beam_size, return_scores=True, target_prefix_ids=target_prefix_ids)


def some_sequences(count: int, seed: int) -> list[Sequence]:
    random = np.random.default_rng(seed)
    sequences = []
    for number in range(count):
        beam_size = int(random.choice([1, 1, 1, 2, 4]))
        sequences.append(
            new_sequence(
                (*random.integers(2, MODEL.vocabulary_size, random.integers(0, 39)).tolist(), EOS_ID),
                request_id=str(number),
                beam_size=beam_size,
                max_output_tokens=int(random.integers(1, 17)),
                length_penalty=float(random.choice([0.0, 1.0, 1.5])),
                num_hypotheses=int(random.integers(1, beam_size + 1)),
                return_scores=bool(random.integers(2)),
                target_prefix_ids=(4, 5)[: random.integers(3)],
            )
        )
    return sequences


@pytest.fixture(scope="module")
def next_log_probs(bundle: Path) -> NextLogProbs:
    """Return what decodes step by step, and remembers what it has decoded: every way of loading asks for the same."""
    reference = StepByStep(bundle)

    @functools.cache
    def decoded(source: tuple[int, ...], inputs: tuple[int, ...]) -> npt.NDArray[np.float32]:
        return np.asarray(reference.log_probs(source, inputs)[-1])

    return decoded


def test_every_answer_is_the_uncached_solo_answer(bundle: Path, load: Load, next_log_probs: NextLogProbs) -> None:
    config = EngineConfig(max_slots=12, max_encode_tokens=120)
    num_different = set()
    for update in decode(load(bundle, config), some_sequences(16, seed=1), config):
        sequence, options = update.sequence, update.sequence.options

        def log_probs(inputs: Sequence_[int], source: tuple[int, ...] = sequence.source_ids) -> npt.NDArray[np.float32]:
            return next_log_probs(source, tuple(inputs))

        expected = reference_search.search(log_probs, (START_ID, *sequence.target_prefix_ids), EOS_ID, options)
        assert update.error is None
        outputs = [tuple(token for token in ids if token != EOS_ID) for ids, _ in expected]
        assert [hypothesis.token_ids for hypothesis in update.hypotheses] == outputs
        if options.return_scores:
            scores = [score for _, score in expected]
            np.testing.assert_allclose([hypothesis.score for hypothesis in update.hypotheses], scores, rtol=1e-4)
        num_different.update(outputs)
    assert len(num_different) > 12, "a model that says the same to everyone would prove nothing"


def test_rows_are_independent_of_company_bucket_and_place(bundle: Path, load: Load) -> None:
    """Bitwise: the same source alone, and among longer ones, moved and re-laid."""
    rows = Rows(load(bundle, EngineConfig(max_slots=6)))
    alone = scored(5, 9, 13, 1)
    rows.join(alone)
    expected = [rows.scores()[0], rows.scores()[0]]
    rows.leave(alone)
    first, again, third = scored(*[3] * 6), scored(5, 9, 13, 1), scored(*[8] * 3)
    rows.join(first, again, third)
    found = [rows.scores()[1]]
    rows.join(scored(*[7] * 33))  # a longer bucket for all
    rows.leave(first)
    found.append(rows.scores()[again.slots[0]])
    assert found == expected


def test_a_sequence_that_fails_leaves_nothing_to_the_next_owner_of_its_rows(bundle: Path, load: Load) -> None:
    """It fails in the encoder, or once it has read a token: then its memory holds NaN."""
    config, nan_id = EngineConfig(max_slots=2), MODEL.nan_id
    good = [((5, 6, 1), ()), ((7, 8, 9, 1), ()), ((10, 1), ())]
    bad = [((*[5] * 29, nan_id), ()), ((5,) * 30, (4, nan_id))]

    def answers(runner: OnnxRunner, *rows: tuple[tuple[int, ...], tuple[int, ...]]) -> list[object]:
        sequences = [scored(*source, beam_size=2, target_prefix_ids=prefix) for source, prefix in rows]
        updates = decode(runner, sequences, config)
        return [repr(update.hypotheses) if update.error is None else type(update.error) for update in updates]

    expected = answers(load(bundle, config), *good)
    mixed = answers(load(bundle, config), good[0], bad[0], good[1], bad[1], good[2])
    assert mixed == [expected[0], EngineFailure, expected[1], EngineFailure, expected[2]]


def test_the_same_rows_with_another_bucket_and_after_a_reset(bundle: Path, load: Load) -> None:
    """Bindings are kept for reuse: they must not outlive the layout or the memory that they were made for."""

    def first_step(rows: Rows, source_length: int) -> float:
        rows.join(sequence := scored(*[5] * source_length))
        (score,) = rows.scores()
        rows.leave(sequence)
        return float(score)

    config = EngineConfig(max_slots=2)
    fresh = {length: first_step(Rows(load(bundle, config)), length) for length in (4, 7, 30)}
    rows = Rows(load(bundle, config))
    assert [first_step(rows, length) for length in (4, 30, 4)] == [fresh[4], fresh[30], fresh[4]]
    rows.runner.terminate()
    with pytest.raises(RunTerminated):
        rows.runner.encode([EncodeJob((5,), [0])])
    rows.runner.reset()
    assert first_step(rows, 7) == fresh[7]


def test_without_the_kernels_library_there_is_no_runner(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kernels.PATH, str(tmp_path / "none.so"))
    with pytest.raises(DeviceUnavailable, match=r"none\.so can't be loaded .*; build it with 'make serve'$"):
        load_on_host(bundle, EngineConfig(max_slots=1))


def test_the_capacity_is_the_models_limit_and_prefix_unless_set(bundle: Path, load: Load) -> None:
    spec = load(bundle, EngineConfig(max_slots=3)).spec
    assert spec.kv_capacity == 26
    assert spec.bytes_per_slot == 4 * MODEL.width * (26 + 48) * 4, "capacity and longest source bucket"
    assert load(bundle, EngineConfig(max_slots=1, kv_capacity=7)).spec.kv_capacity == 7


def test_workers_share_the_graphs_and_the_slots_and_give_the_same_numbers(bundle: Path) -> None:
    """Alone with all threads, or beside another with its own."""
    config = SessionConfig(intra_op_threads=2)
    runners = OnnxRunner.load_for_workers(bundle, manifest(), EngineConfig(max_slots=40), config)
    assert [runner.spec.max_slots for runner in runners] == [20, 20]
    outputs = []
    for runner, other in (runners, runners[::-1]):
        for is_alone in (True, False):
            runner.reset()
            other.reset()
            if not is_alone:
                Rows(other).join(scored(5, 1))
            rows = Rows(runner)
            rows.join(*(scored(5 + row, 6, 7, 1) for row in range(3)))
            assert runner.is_alone == is_alone
            outputs.append(rows.scores(3).tolist())
        other.idle()
        assert runner.is_alone
    assert outputs == [outputs[0]] * 4


@pytest.mark.parametrize(
    ("device", "threads", "max_slots", "expected"),
    [("cpu", 1, 64, 1), ("cpu", 2, 64, 2), ("cpu", 2, 31, 1), ("cpu", 16, 64, 4), ("cuda", 8, 64, 1)],
)
def test_workers_follow_threads_and_slots(device: str, threads: int, max_slots: int, expected: int) -> None:
    assert num_workers(SessionConfig(device, intra_op_threads=threads), max_slots) == expected


def test_in_float16_on_a_device_outputs_have_the_scores_that_they_get(tmp_path: Path) -> None:
    """As on a GPU, with the CPU as the device; ONNX Runtime casts what it has no kernel for."""
    model = half_precision.HALF
    half, single = write_graphs(tmp_path / "half", model), write_graphs(tmp_path / "single", half_precision.SINGLE)
    half_precision.check_scores(load_on_device(half, half_precision.CONFIG, model), single)
