"""Warms up a bundle, so that the first callers don't pay for one-time costs, and measures the best number of slots."""

import logging
import math
import time
from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from concurrent.futures import ThreadPoolExecutor

from service.bundle import fused_io
from service.bundle.errors import BundleError, one_line
from service.domain.options import MAX_BEAM_SIZE, DecodingOptions
from service.engine.batch import Batch
from service.engine.config import EngineConfig
from service.engine.runner import ONE_STEP, EncodeJob, Runner
from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.runners import BundleRunner
from service.engine.runtime.session import DeviceUnavailable
from service.engine.sequence import Sequence
from service.models.repository import FoundBundle
from service.models.self_test import run_trial

_LOG = logging.getLogger(__name__)

SLOT_COUNTS = (16, 32, 64, 128)  # of all workers together
# With fused graphs a small model's steps are hardly faster per row with many rows, but its turns and encoder runs are:
# with 32 each instead of 16, two workers gave 96 callers an eighth more (`benchmarks.serving`). With 64 instead of 32,
# a row takes 4 % more CPU alone, and 8 % more beside another process: the cached keys and values displace the weights.
_LEAST_FUSED_SLOTS = 32  # of each worker
_PART = 4  # of a worker's slots, one part is measured, too
_ENOUGH = 0.8  # of the highest number of rows per second
_LONGEST_STEP_SECONDS = 0.1  # every sequence waits that long for each token
_MEASURED_SECONDS = 0.03
_MOST_STEPS = 16  # of a model whose steps take less than that allows
_FEW_TOKENS = 4  # of a trial: what it shows does not depend on more
_SOURCE_TOKENS = 2  # of those measured: encoding takes a while, and few or many more make a step no slower


def warm_up(bundle: FoundBundle, runners: Sequence_[BundleRunner], engine_config: EngineConfig) -> dict[int, float]:
    """Run full batches, a beam and changed scores for a few steps; choose the number of slots if it was left open.

    Runners then have their slots. Return the slowest worker's seconds per step with one, some, and all slots.
    """
    slot_counts = worthwhile_counts(len(runners), are_fused=isinstance(runners[0], FusedRunner))
    source_ids = min((golden.source_ids for golden in bundle.manifest.golden), key=len)[-_SOURCE_TOKENS:]
    filled: list[Batch] = []  # of each worker, until its runner is resized

    def lanes_step_seconds(num_rows: Sequence_[int]) -> dict[int, float]:
        """Measure the workers' steps concurrently, as they will run, since they share memory bandwidth and caches."""
        with ThreadPoolExecutor(len(runners)) as pool:
            if not filled:
                filling = [pool.submit(fill, each, source_ids, engine_config.max_encode_tokens) for each in runners]
                filled.extend(each.result() for each in filling)
            seconds = {}
            for number in num_rows:
                pairs = zip(runners, filled, strict=True)
                workers = [pool.submit(fastest_step, runner, batch, number) for runner, batch in pairs]
                seconds[number] = max(worker.result() for worker in workers)
        for runner in runners:
            runner.idle()
        return seconds

    def resize(per_worker: int) -> None:
        filled.clear()
        for runner in runners:
            runner.resize(per_worker)

    def step_seconds(num_slots: int) -> float | None:
        per_worker = num_slots // len(runners)
        try:
            if not filled or per_worker > runners[0].spec.max_slots:
                resize(per_worker)
        except DeviceUnavailable:
            if num_slots == slot_counts[0]:
                raise
            return None
        return lanes_step_seconds([per_worker])[per_worker]

    try:
        if engine_config.max_slots is None:
            chosen = knee(step_seconds, slot_counts)
            resize(chosen // len(runners))
            _LOG.info("%s: slots: %d, divided among batches: %d", bundle.directory, chosen, len(runners))
        max_slots = runners[0].spec.max_slots
        seconds = lanes_step_seconds(sorted({1, -(-max_slots // _PART), max_slots}))
    except DeviceUnavailable:
        raise
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        raise BundleError(f"{bundle.directory} fails its warm-up: {one_line(error)}") from error
    _decode_by_scores(bundle, runners[0], engine_config)
    return seconds


def worthwhile_counts(num_workers: int, *, are_fused: bool) -> tuple[int, ...]:
    """Return the numbers of slots, for all workers together, to choose from; `are_fused` says which graphs they run."""
    least = num_workers * (_LEAST_FUSED_SLOTS if are_fused else MAX_BEAM_SIZE)  # each has room for any beam
    return tuple(sorted({max(count, least) for count in SLOT_COUNTS}))


def knee(
    step_seconds: Callable[[int], float | None], slot_counts: tuple[int, ...] = SLOT_COUNTS, num_rounds: int = 2
) -> int:
    """Return the smallest of `slot_counts` that yields nearly as many rows per second as any.

    With all slots in use, doubling them doubles everyone's latency, except for the gain in rows per second.
    `step_seconds` measures a step with this many rows; `None` if there can't be so many. Each count is measured in
    several rounds, as machines stall; larger ones, which take a large model seconds, only while they may change the
    choice: the cost that a step's rows share is halved by each doubling, so all further ones together gain at most what
    the last one did.
    """
    rates: dict[int, float] = {}  # rows per second

    def smallest(best: float) -> int | None:
        return next((num_slots for num_slots, rate in rates.items() if rate >= _ENOUGH * best), None)

    for _ in range(num_rounds):
        before = 0.0
        for num_slots in slot_counts:
            seconds = step_seconds(num_slots)
            if seconds is None:
                break
            rate = rates[num_slots] = max(num_slots / seconds, rates.get(num_slots, 0.0))
            gain = max(rate / before, 1.0) if before else math.inf
            best = max(rates.values())
            if num_slots / rate > _LONGEST_STEP_SECONDS or smallest(best) == smallest(best * gain):
                break
            before = rate
    for num_slots, rate in rates.items():
        _LOG.debug("%d rows: %.2f ms a step, %.0f rows a second", num_slots, 1000 * num_slots / rate, rate)
    return smallest(max(rates.values())) or slot_counts[0]


def fill(runner: Runner, source_ids: tuple[int, ...], max_encode_tokens: int) -> Batch:
    """Give all slots the same source, and return their rows; no engine may run on the runner."""
    runner.reset()
    spec = runner.spec
    batch = Batch(spec.max_slots, spec.kv_capacity)
    runner.attach(batch.state)
    options = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=spec.kv_capacity)
    jobs = [
        EncodeJob(source_ids, batch.join(Sequence(source_ids, options, 0.0), spec.decoder_start_id))
        for _ in range(spec.max_slots)
    ]
    per_run = max(max_encode_tokens // len(source_ids), 1)
    for start in range(0, len(jobs), per_run):
        runner.encode(jobs[start : start + per_run])
    return batch


def fastest_step(runner: Runner, batch: Batch, num_rows: int) -> float:
    """Return the seconds of the fastest of a few steps with so many of the slots, all previously filled, in use."""
    rows = batch.state.rows
    seconds: list[float] = []
    for length in range(min(_MOST_STEPS, runner.spec.kv_capacity)):
        rows["token_id"], rows["length"], rows["status"] = runner.spec.decoder_start_id, length, fused_io.RUNNING
        began = time.perf_counter()
        runner.search(num_rows, ONE_STEP)
        seconds.append(time.perf_counter() - began)
        if sum(seconds[1:]) > _MEASURED_SECONDS:  # the first one touches memory for the first time
            break
    return min(seconds)


def _decode_by_scores(bundle: FoundBundle, runner: Runner, engine_config: EngineConfig) -> None:
    """Decode a beam and, where the graphs allow that, by options that change scores: what greedy search lacks."""
    manifest = bundle.manifest
    golden = manifest.golden[0]
    max_output_tokens = min(len(golden.output_ids), _FEW_TOKENS)
    width = min(MAX_BEAM_SIZE, runner.spec.max_slots, manifest.model.vocabulary_size)
    wanted = [DecodingOptions(width, 1.0, 1, max_output_tokens)]
    if runner.spec.has_logits:
        wanted.append(DecodingOptions(1, 1.0, 1, max_output_tokens, repetition_penalty=2.0))
    sequences = [Sequence(golden.source_ids, options, time.monotonic()) for options in wanted]
    run_trial(sequences, [runner], engine_config, str(bundle.directory))
