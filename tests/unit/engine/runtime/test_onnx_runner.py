"""The real runner on tiny graphs in ONNX Runtime, against the same graphs run one row at a time without a cache."""

from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy import typing as npt

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, Limits, ModelShape, TokenizerSpec
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob, RunTerminated
from service.engine.runtime import kernels
from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import Binding, DeviceUnavailable, SessionConfig
from service.engine.runtime.shared_graph import num_workers
from service.engine.runtime.step_inputs import StepInputs
from service.engine.runtime.step_search import Need, StepSearch
from service.engine.sequence import Sequence
from tests.unit.engine import reference_search
from tests.unit.engine.recorder import decode, new_sequence
from tests.unit.engine.runtime.device_access import get, put
from tests.unit.engine.runtime.steps import attached, step
from tests.unit.engine.runtime.tiny_graphs import TinyModel, save_decoder_step, save_encoder

MODEL = TinyModel()
PAD_ID, EOS_ID, START_ID = 0, 1, 0
PROVIDERS = ["CPUExecutionProvider"]
ONE_THREAD = SessionConfig(intra_op_threads=1)
Load = Callable[[Path, EngineConfig], OnnxRunner]
GREEDY, SCORED, FOUR = Need(0, 0, 0, 0), Need(0, 1, 0, 0), Need(4, 0, 0, 0)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bundle")
    save_encoder(MODEL, directory / "encoder.onnx")
    save_decoder_step(MODEL, directory / "decoder_step.onnx")
    return directory


def manifest(max_source_tokens: int = 40, max_output_tokens: int = 24) -> Manifest:
    return Manifest(
        name="tiny",
        model=ModelShape(MODEL.num_layers, MODEL.num_heads, MODEL.head_size, MODEL.vocabulary_size),
        tokenizer=TokenizerSpec("none", "none", PAD_ID, EOS_ID, unk_id=2, decoder_start_id=START_ID),
        languages=(LanguagePair("en", "de", target_prefix_ids=(4, 5)),),
        limits=Limits(max_source_tokens, max_output_tokens),
        golden=(),
        checksums={},
        checkpoint_sha256="",
    )


def load_on_host(bundle: Path, config: EngineConfig) -> OnnxRunner:
    return attached(OnnxRunner.load(bundle, manifest(), config, ONE_THREAD))


def load_sharded(bundle: Path, config: EngineConfig) -> OnnxRunner:
    """Load a runner that splits rows among threads as soon as there are six."""
    return attached(OnnxRunner.load(bundle, manifest(), config, SessionConfig(intra_op_threads=3)))


def load_on_device(bundle: Path, config: EngineConfig) -> OnnxRunner:
    """Load the runner as on a GPU, with all memory on a device; the device is the CPU here."""
    runner = load_on_host(bundle, config)
    runner._cache = DeviceCache(runner._cache.shape, ONE_THREAD)
    runner._inputs = StepInputs(runner.spec.max_slots, "cpu")
    runner._search = StepSearch(runner.spec, MODEL.vocabulary_size, runner._inputs)
    return attached(runner)


@pytest.fixture(params=[load_on_host, load_sharded, load_on_device])
def load(request: pytest.FixtureRequest) -> Load:
    loader: Load = request.param
    return loader


def spoil_row(runner: OnnxRunner, row: int) -> None:
    """Overwrite a row with NaN."""
    for buffer in (*runner._cache.past(row + 1), *runner._cache.cross(row + 1)):
        contents = get(buffer)
        contents[row] = np.nan
        put(buffer, contents)


class Reference:
    """Log-probabilities by decoding each output from its first token on, one row, nothing shared, nothing bound."""

    def __init__(self, bundle: Path) -> None:
        self.encoder = ort.InferenceSession(bundle / "encoder.onnx", providers=PROVIDERS)
        self.step = ort.InferenceSession(bundle / "decoder_step.onnx", providers=PROVIDERS)

    def log_probs(self, source_ids: tuple[int, ...], inputs: Sequence_[int]) -> npt.NDArray[np.float32]:
        lengths = np.array([len(source_ids)], np.int32)
        cross = self.encoder.run(None, {"source_ids": np.array([source_ids]), "source_lengths": lengths})
        feed = dict(zip(graph_io.cross_names(MODEL.num_layers), cross, strict=True))
        shape = (1, MODEL.num_heads, len(inputs), MODEL.head_size)
        feed |= {name: np.zeros(shape, np.float32) for name in graph_io.past_names(MODEL.num_layers)}
        for position, token_id in enumerate(inputs):
            feed |= {
                graph_io.TOKEN_IDS: np.array([token_id]),
                graph_io.LENGTHS: np.array([position], np.int32),
                graph_io.TOTAL_LENGTH: np.array([position + 1], np.int32),
                graph_io.SOURCE_LENGTHS: lengths,
                graph_io.NUM_CANDIDATES: np.array([MODEL.vocabulary_size]),
            }
            _, _, ids, ranked, *present = self.step.run(graph_io.step_outputs(MODEL.num_layers), feed)
            feed |= dict(zip(graph_io.past_names(MODEL.num_layers), present, strict=True))
        log_probs = np.empty(MODEL.vocabulary_size, np.float32)
        log_probs[ids[0]] = ranked[0]
        return log_probs


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
                max_output_tokens=int(random.integers(1, 25)),
                length_penalty=float(random.choice([0.0, 1.0, 1.5])),
                num_hypotheses=int(random.integers(1, beam_size + 1)),
                return_scores=bool(random.integers(2)),
                target_prefix_ids=(4, 5)[: random.integers(3)],
            )
        )
    return sequences


def test_every_answer_is_the_uncached_solo_answer(bundle: Path, load: Load) -> None:
    config = EngineConfig(max_slots=12, max_encode_tokens=120)
    sequences = some_sequences(16, seed=1)
    reference = Reference(bundle)
    num_different = set()
    for update in decode(load(bundle, config), sequences, config):
        sequence, options = update.sequence, update.sequence.options
        start = (START_ID, *sequence.target_prefix_ids)

        def log_probs(inputs: Sequence_[int], source: tuple[int, ...] = sequence.source_ids) -> npt.NDArray[np.float32]:
            return reference.log_probs(source, inputs)

        expected = reference_search.search(log_probs, start, EOS_ID, options)
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
    runner = load(bundle, EngineConfig(max_slots=6))

    def one_step(lengths: list[int], tokens: list[int], sources: list[int]) -> npt.NDArray[np.float32]:
        return step(runner, tokens, lengths, sources, SCORED).next_log_probs

    source = (5, 9, 13, 1)
    runner.encode([EncodeJob(source, [0])])
    alone = [one_step([0], [0], [4])[0], one_step([1], [7], [4])[0]]
    runner.reset()
    runner.encode([EncodeJob((3,) * 6, [0]), EncodeJob(source, [1]), EncodeJob((8,) * 3, [2])])
    in_company = [one_step([0, 0, 0], [0, 0, 0], [6, 4, 3])[1]]
    runner.encode([EncodeJob((7,) * 33, [3])])  # a longer bucket for all
    runner.move(1, 0, 1)
    in_company.append(one_step([1, 0, 1, 0], [7, 0, 2, 0], [4, 4, 3, 33])[0])
    np.testing.assert_array_equal(in_company, alone)


def test_the_cache_grows_in_place(bundle: Path, load: Load) -> None:
    runner = load(bundle, EngineConfig(max_slots=3))
    runner.encode([EncodeJob((5, 6, 1), [0]), EncodeJob((7, 1), [1])])
    step(runner, [3, 4], [0, 0], [3, 2], GREEDY)
    step(runner, [3, 4], [1, 1], [3, 2], GREEDY)
    arenas = np.stack([get(buffer) for buffer in runner._cache.past(3)])
    assert (arenas[:, :2, :, :2] != 0).all(), "bound outputs are the arenas themselves"
    assert (arenas[:, :2, :, 2:] == 0).all()
    assert (arenas[:, 2] == 0).all()


def test_a_failed_rows_leavings_do_not_reach_its_next_owner(bundle: Path, load: Load) -> None:
    runner = load(bundle, EngineConfig(max_slots=2))

    def first_step() -> npt.NDArray[np.float32]:
        runner.encode([EncodeJob((5,), [0])])
        return step(runner, [0], [0], [1], FOUR).candidate_log_probs

    clean = first_step()
    runner.encode([EncodeJob((5,) * 30, [0])])
    spoil_row(runner, 0)
    output = step(runner, [0], [3], [30], FOUR).candidate_log_probs
    assert np.isnan(output).all(), "a positive control"
    runner.clear([0])
    np.testing.assert_array_equal(first_step(), clean)


def test_sources_that_encode_to_no_numbers_are_reported(bundle: Path, load: Load) -> None:
    runner = load(bundle, EngineConfig(max_slots=2))
    session = runner._encoder.session(is_alone=True)
    run = session.run

    def poison(binding: Binding) -> None:
        run(binding)
        spoiled = get(binding.outputs["cross_value.1"])
        spoiled[1, 0, 0, 0] = np.inf
        put(binding.outputs["cross_value.1"], spoiled)

    session.run = poison  # type: ignore[method-assign]
    assert runner.encode([EncodeJob((5,), [0]), EncodeJob((6,), [1])]) == [True, False]


def test_the_same_rows_with_another_bucket_and_after_a_reset(bundle: Path, load: Load) -> None:
    """Bindings are kept for reuse: they must not outlive the layout or the memory that they were made for."""

    def first_step(runner: OnnxRunner, source_length: int) -> npt.NDArray[np.float32]:
        runner.encode([EncodeJob((5,) * source_length, [0])])
        return step(runner, [0], [0], [source_length], FOUR).candidate_log_probs

    config = EngineConfig(max_slots=2)
    fresh = {length: first_step(load(bundle, config), length) for length in (4, 7, 30)}
    runner = load(bundle, config)
    for length in (4, 30, 4):
        np.testing.assert_array_equal(first_step(runner, length), fresh[length])
    runner.reset()
    np.testing.assert_array_equal(first_step(runner, 7), fresh[7])


def test_a_terminated_runner_runs_again_after_reset(bundle: Path, load: Load) -> None:
    runner = load(bundle, EngineConfig(max_slots=2))
    runner.terminate()
    with pytest.raises(RunTerminated):
        runner.encode([EncodeJob((5,), [0])])
    runner.reset()
    assert runner.encode([EncodeJob((5,), [0])]) == [True]


def test_without_the_kernels_library_there_is_no_runner(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kernels.PATH, str(tmp_path / "none.so"))
    with pytest.raises(DeviceUnavailable, match=r"none\.so can't be loaded .*; build it with 'make serve'$"):
        load_on_host(bundle, EngineConfig(max_slots=1))


def test_the_capacity_is_the_models_limit_and_prefix_unless_set(bundle: Path, load: Load) -> None:
    assert load(bundle, EngineConfig(max_slots=1)).spec.kv_capacity == 26
    assert load(bundle, EngineConfig(max_slots=1, kv_capacity=7)).spec.kv_capacity == 7


def test_the_runner_says_what_a_slot_takes(bundle: Path, load: Load) -> None:
    tokens = 26 + 48  # capacity and longest source bucket
    assert load(bundle, EngineConfig(max_slots=3)).spec.bytes_per_slot == 4 * MODEL.width * tokens * 4


def test_lanes_share_the_graphs_and_the_slots_and_give_the_same_numbers(bundle: Path) -> None:
    """Alone with all threads or beside others with its own: int8 and float32 products are bitwise equal."""
    config = EngineConfig(max_slots=40)
    runners = OnnxRunner.load_for_workers(bundle, manifest(), config, SessionConfig(intra_op_threads=2))
    runners = [attached(runner) for runner in runners]
    assert [runner.spec.max_slots for runner in runners] == [20, 20]
    outputs = []
    for runner, other in (runners, runners[::-1]):
        for is_alone in (True, False):
            runner.reset()
            other.reset()
            if not is_alone:
                other.encode([EncodeJob((5, 1), [0])])
            jobs = [EncodeJob((5 + row, 6, 7, 1), [row]) for row in range(3)]
            assert runner.encode(jobs) == [True] * 3
            assert runner.is_alone == is_alone
            outputs.append(step(runner, [0, 3, 4], [0, 0, 0], [4, 4, 4], FOUR).candidate_log_probs)
    for each in outputs[1:]:
        np.testing.assert_array_equal(each, outputs[0])


def test_a_runner_is_alone_while_the_others_are_idle(bundle: Path) -> None:
    config = SessionConfig("cpu", 2)
    first, second = map(attached, OnnxRunner.load_for_workers(bundle, manifest(), EngineConfig(max_slots=40), config))
    first.encode([EncodeJob((5, 1), [0])])
    assert [runner.is_alone for runner in (first,)] == [True]
    second.encode([EncodeJob((5, 1), [0])])
    assert [runner.is_alone for runner in (first, second)] == [False, False]
    first.idle()
    assert [runner.is_alone for runner in (second,)] == [True]


@pytest.mark.parametrize(("threads", "max_slots", "expected"), [(1, 64, 1), (2, 64, 2), (2, 31, 1), (16, 64, 4)])
def test_lanes_follow_threads_and_slots(threads: int, max_slots: int, expected: int) -> None:
    assert num_workers(SessionConfig(intra_op_threads=threads), max_slots) == expected


def test_a_device_that_runs_one_thing_at_a_time_has_one_lane() -> None:
    assert num_workers(SessionConfig("cuda", intra_op_threads=8), 64) == 1
