"""How many slots are worthwhile, and that warming up leaves a runner with that many."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.engine.config import EngineConfig
from service.engine.runtime import onnx_runner
from service.engine.runtime.host_cache import HostCache
from service.engine.runtime.kv_cache import CacheShape
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import DeviceUnavailable, SessionConfig
from service.models.repository import FoundBundle
from service.models.warm_up import SLOT_COUNTS, knee, warm_up, worthwhile_counts
from tests.found_bundles import find_bundles


def steps(fixed: float, per_row: float) -> Callable[[int], float]:
    """Return the duration of a step: fixed milliseconds plus milliseconds per row."""
    return lambda num_slots: (fixed + per_row * num_slots) / 1000


@pytest.mark.parametrize(
    ("fixed", "per_row", "slots"),
    [
        (10.0, 0.0, 128),  # rows are free
        (0.0, 0.1, 16),  # a batch saves nothing
        (2.0, 0.1, 64),  # 88 % of the throughput of 128; 32 reach 71 %
        (0.5, 0.1, 32),
    ],
)
def test_slots_are_added_while_they_pay(fixed: float, per_row: float, slots: int) -> None:
    assert knee(steps(fixed, per_row)) == slots


@pytest.mark.parametrize(("fixed", "per_row", "largest"), [(0.3, 0.7, 32), (0.0, 0.1, 32), (2.0, 0.1, 128)])
def test_more_rows_are_tried_while_they_may_change_the_choice(fixed: float, per_row: float, largest: int) -> None:
    """The first is like tc-big on two CPUs, of which 32 rows take 25 ms and 128 take 97 ms."""
    tried: list[int] = []

    def step_seconds(num_slots: int) -> float:
        tried.append(num_slots)
        return steps(fixed, per_row)(num_slots)

    knee(step_seconds)
    assert max(tried) == largest


def test_nobody_is_made_to_wait_long_for_a_token() -> None:
    tried = []

    def slow(num_slots: int) -> float:
        tried.append(num_slots)
        return 0.08 + 0.001 * num_slots

    assert knee(slow) in (16, 32)
    assert max(tried) == 32


def test_a_bad_moment_of_the_machine_is_tried_again() -> None:
    tried: list[int] = []

    def noisy(num_slots: int) -> float:
        tried.append(num_slots)
        return steps(2.0, 0.1)(num_slots) * (3.0 if tried == [16, 32, 64] else 1.0)

    assert knee(noisy) == 64


def test_what_does_not_fit_is_not_chosen() -> None:
    assert knee(lambda num_slots: 0.01 if num_slots <= 32 else None) == 32


@pytest.mark.parametrize(
    ("num_workers", "are_fused", "counts"),
    [
        (1, False, (16, 32, 64, 128)),
        (2, False, (16, 32, 64, 128)),
        (4, False, (32, 64, 128)),
        (1, True, (32, 64, 128)),
        (2, True, (64, 128)),
        (4, True, (128,)),
    ],
)
def test_each_worker_has_room_for_beams(num_workers: int, are_fused: bool, counts: tuple[int, ...]) -> None:
    assert worthwhile_counts(num_workers, are_fused=are_fused) == counts


def found(directory: Path) -> FoundBundle:
    (bundle,) = find_bundles(directory)
    return bundle


def load(bundle: FoundBundle, config: EngineConfig) -> OnnxRunner:
    return OnnxRunner.load(bundle.directory, bundle.manifest, config, SessionConfig(intra_op_threads=1))


def test_the_runner_has_the_slots_that_were_asked_for(tiny_bundle: Path) -> None:
    bundle, config = found(tiny_bundle), EngineConfig(max_slots=5)
    runner = load(bundle, config)
    step_seconds = warm_up(bundle, [runner], config)
    assert runner.spec.max_slots == 5
    assert list(step_seconds) == [1, 2, 5]
    assert min(step_seconds.values()) > 0.0


def test_slots_that_were_left_open_are_chosen(tiny_bundle: Path) -> None:
    bundle, config = found(tiny_bundle), EngineConfig()
    runners = [runner := load(bundle, config), runner.beside()]
    warm_up(bundle, runners, config)
    assert 2 * runner.spec.max_slots in SLOT_COUNTS
    assert runners[1].spec == runner.spec


def test_a_device_without_memory_for_few_slots_is_named(tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: OnnxRunner, max_slots: int) -> None:
        raise DeviceUnavailable(f"no room for {max_slots}")

    bundle, config = found(tiny_bundle), EngineConfig()
    runner = load(bundle, config)
    monkeypatch.setattr(OnnxRunner, "resize", full)
    with pytest.raises(DeviceUnavailable, match="no room for 16"):
        warm_up(bundle, [runner], config)


def test_a_device_without_memory_for_many_slots_gets_fewer(tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cache(shape: CacheShape) -> HostCache:
        if shape.max_slots > 32:
            raise DeviceUnavailable(f"no room for {shape.max_slots}")
        return HostCache(shape)

    monkeypatch.setattr(onnx_runner, "HostCache", cache)
    bundle, config = found(tiny_bundle), EngineConfig()
    runner = load(bundle, config)
    warm_up(bundle, [runner], config)
    assert runner.spec.max_slots in (16, 32)
