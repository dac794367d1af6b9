"""Compares a step with this machine's limits: its bytes and multiply-adds at the measured maximum rates."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models import DEFAULT_MODELS, MODELS, PRECISIONS, prepare
from benchmarks.report import write_records
from benchmarks.scale import DEFAULT_SOURCE, DEFAULT_STEPS, load_runner
from benchmarks.workload import BATCHES
from service.bundle.manifest import Manifest
from service.engine.cpus import available_cpus

COPY_BYTES = 256 * 2**20  # far beyond the caches
GEMM_ROWS, GEMM_INNER, GEMM_OUTER = 256, 512, 2048
REPEATS = 8
BYTES = {"float32": 4, "int8": 1}


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), help="Only these.")
@click.option("--precision", default="int8", show_default=True, type=click.Choice(PRECISIONS))
@click.option("--rounds", default=12, show_default=True)
def main(models: tuple[str, ...], precision: str, rounds: int) -> None:
    """Measure, print and write build/bench/limit.json."""
    threads = available_cpus()
    bandwidth = read_bandwidth()
    rates = {kind: product_rate(kind, threads) for kind in BYTES}
    ceilings = {
        "read_bytes_per_second": bandwidth,
        **{f"{kind}_multiply_adds_per_second": rate for kind, rate in rates.items()},
    }
    products = ", ".join(f"{rate / 1e9:.0f} G/s in {kind}" for kind, rate in rates.items())
    line = f"Ceilings: memory is read at {bandwidth / 1e9:.1f} GB/s; multiply-adds run at {products}"
    click.echo(line)
    records: list[dict[str, Any]] = [{"kind": "ceilings", "line": line, **ceilings}]
    for name in models or DEFAULT_MODELS:
        bundle = prepare(MODELS[name], precision, click.echo)
        num_weights = dense_weights(bundle / Manifest.load(bundle).graphs.decoder_step)
        runner = load_runner(bundle, max(BATCHES), threads)
        for batch in BATCHES:
            seconds = min(runner.time(batch, DEFAULT_SOURCE, DEFAULT_STEPS)[1] for _ in range(rounds))
            from_bytes = num_weights * BYTES[precision] / bandwidth
            from_products = num_weights * batch / rates[precision]
            share, megabytes = max(from_bytes, from_products) / seconds, num_weights * BYTES[precision] / 1e6
            line = (
                f"{name}, {precision}, batch {batch}: a step takes {seconds * 1e3:.2f} ms. "
                f"Reading its {megabytes:.1f} MB of weights would take {from_bytes * 1e3:.2f} ms, "
                f"its products {from_products * 1e3:.2f} ms: {share:.0%} of the limit"
            )
            click.echo(line)
            records.append(
                {
                    "kind": "step",
                    "model": name,
                    "engine": "dragoman",
                    "precision": precision,
                    "batch": batch,
                    "step_ms": seconds * 1e3,
                    "bytes_ms": from_bytes * 1e3,
                    "products_ms": from_products * 1e3,
                    "share_of_limit": share,
                    "line": line,
                }
            )
    click.echo(f"Wrote {write_records('limit', records)}.")


def dense_weights(graph: Path) -> int:
    """Count the numbers in the matrices that every row of a step is multiplied by, without look-up tables."""
    model = onnx.load(graph)
    multiplied = {name for node in model.graph.node if node.op_type != "Gather" for name in node.input}
    shapes = [each.dims for each in model.graph.initializer if each.name in multiplied and len(each.dims) == 2]
    return sum(int(np.prod(shape)) for shape in shapes)


def read_bandwidth() -> float:
    """Return bytes per second for reading a large array once, one part per thread, summed; best of several runs."""
    threads = available_cpus()
    parts = [np.ones(COPY_BYTES // threads // 8) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = _best(lambda: list(pool.map(np.max, parts)))
    return COPY_BYTES / seconds


def product_rate(kind: str, threads: int) -> float:
    """Return multiply-adds per second of a large matrix product in ONNX Runtime; best of several runs."""
    rng = np.random.default_rng(0)
    if kind == "int8":
        left = rng.integers(0, 255, (GEMM_ROWS, GEMM_INNER), dtype=np.uint8)
        right = rng.integers(-127, 127, (GEMM_INNER, GEMM_OUTER), dtype=np.int8)
        node, element, result = "MatMulInteger", TensorProto.UINT8, TensorProto.INT32
    else:
        left = rng.standard_normal((GEMM_ROWS, GEMM_INNER)).astype(np.float32)
        right = rng.standard_normal((GEMM_INNER, GEMM_OUTER)).astype(np.float32)
        node, element, result = "MatMul", TensorProto.FLOAT, TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(node, ["left", "right"], ["product"])],
        "product",
        [helper.make_tensor_value_info("left", element, left.shape)],
        [helper.make_tensor_value_info("product", result, (GEMM_ROWS, GEMM_OUTER))],
        [numpy_helper.from_array(right, "right")],
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    seconds = _best(lambda: session.run(None, {"left": left}))
    return GEMM_ROWS * GEMM_INNER * GEMM_OUTER / seconds


def _best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS * 4):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.mean(sorted(times)[:3])


if __name__ == "__main__":
    main()
