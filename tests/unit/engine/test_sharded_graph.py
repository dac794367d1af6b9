"""Rows split among threads: the same numbers as in one run, and errors that wait for all shares."""

from pathlib import Path

import numpy as np
import pytest

from service.bundle import graph_io
from service.engine.runner import RunTerminated
from service.engine.session import Array, Binding, Buffer, GraphSession, SessionConfig
from service.engine.sharded_graph import MIN_ROWS_PER_SHARD, ShardedBinding, ShardedGraph
from tests.unit.engine.tiny_graphs import TinyModel, save_encoder

MODEL = TinyModel()
INPUTS, OUTPUTS = graph_io.encoder_inputs(), graph_io.cross_names(MODEL.num_layers)
WIDTH = 5


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "encoder.onnx"
    save_encoder(MODEL, path)
    return path


def sharded(path: Path, threads: int) -> ShardedGraph:
    return ShardedGraph(path, SessionConfig(intra_op_threads=threads), INPUTS, OUTPUTS)


def bound(graph: ShardedGraph, num_rows: int) -> tuple[ShardedBinding, dict[str, np.ndarray]]:
    rng = np.random.default_rng(num_rows)
    inputs: dict[str, Array | Buffer] = {
        graph_io.SOURCE_IDS: rng.integers(2, MODEL.vocabulary_size, (num_rows, WIDTH)),
        graph_io.SOURCE_LENGTHS: rng.integers(1, WIDTH + 1, num_rows).astype(np.int32),
    }
    shape = (num_rows, MODEL.num_heads, WIDTH, MODEL.head_size)
    outputs = {name: np.full(shape, np.nan, np.float32) for name in OUTPUTS}
    return graph.bind(num_rows, inputs, outputs), outputs


@pytest.mark.parametrize("num_rows", [1, 2, 3, 4, 7, 16, 33])
@pytest.mark.parametrize("threads", [2, 3])
def test_shares_give_what_one_run_gives(encoder: Path, num_rows: int, threads: int) -> None:
    whole, split = sharded(encoder, 1), sharded(encoder, threads)
    (expected_binding, expected), (binding, given) = bound(whole, num_rows), bound(split, num_rows)
    assert len(expected_binding.shards) == 1
    assert len(binding.shards) == (threads if num_rows >= MIN_ROWS_PER_SHARD * threads else 1)
    whole.run(expected_binding)
    split.run(binding)
    for name in OUTPUTS:
        np.testing.assert_allclose(given[name], expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_failing_share_fails_the_run_when_the_others_are_done(encoder: Path, broken: int) -> None:
    graph = sharded(encoder, 3)
    binding, outputs = bound(graph, 9)
    bad = binding.shards[broken].inputs[graph_io.SOURCE_IDS]
    ids = np.full(bad.shape, MODEL.vocabulary_size + 7, np.int64)  # no such token: Gather refuses
    session = binding.session
    session.rebind(binding.shards[broken], {graph_io.SOURCE_IDS: ids})
    with pytest.raises(Exception, match="out of"):
        graph.run(binding)
    good = [row for row in range(9) if row // 3 != broken]
    assert all(np.isfinite(array[good]).all() for array in outputs.values())


def test_terminate_reaches_all_shares_until_reset(encoder: Path) -> None:
    graph = sharded(encoder, 2)
    binding, outputs = bound(graph, 8)
    graph.terminate()
    with pytest.raises(RunTerminated):
        graph.run(binding)
    graph.reset()
    graph.run(binding)
    assert all(np.isfinite(array).all() for array in outputs.values())


def test_an_error_of_the_callers_own_share_comes_first(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = sharded(encoder, 2)
    binding, _ = bound(graph, 4)
    real = GraphSession.run

    def run(session: GraphSession, shard: Binding) -> None:
        real(session, shard)
        raise ValueError("first" if shard is binding.shards[0] else "second")

    monkeypatch.setattr(GraphSession, "run", run)
    with pytest.raises(ValueError, match="first"):
        graph.run(binding)


def test_rows_of_a_buffer_are_the_arrays_own_memory() -> None:
    array = np.arange(24, dtype=np.int32).reshape(4, 3, 2)
    part = Buffer.of(array).rows(1, 3)
    assert part.shape == (2, 3, 2)
    assert part.address == array[1:3].ctypes.data
    assert part.owner is array
    with pytest.raises(AssertionError, match="rows 3 to 5 of 4"):
        Buffer.of(array).rows(3, 5)
