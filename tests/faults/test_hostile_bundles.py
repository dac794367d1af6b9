"""No bundle ends or stalls a server, whatever its graphs do: it is rejected, or served right."""

import dataclasses
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.models.reload_plan import ReloadOutcome
from service.models.trial import try_out
from tests.callers import Callers
from tests.faults import hostile_bundles
from tests.faults.bundle_loader import BundleLoader
from tests.faults.damaged_bundles import Damage
from tests.faults.mutated_graphs import mutate
from tests.found_bundles import find_bundles
from tests.fuzz.properties import check_message
from tests.servers import Serve

ENGINE, SESSION = EngineConfig(max_slots=4), SessionConfig(intra_op_threads=1)
SOME = ("attention of no width", "constants that fill the memory", "logits of twice the rows")
UNCHECKED = "from service.bundle import checksums; checksums.check_graph = lambda *_: None; "
TRY = "from service.models.trial_process import main; main()"


def spoilt(good: Path, place: Path, hostile: Damage) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(good, place)
    hostile.inflict(place)
    return place


def by_name(kind: Iterable[Damage], *names: str) -> list[Damage]:
    known = {each.name: each for each in kind}
    return [known[name] for name in names]


def check_never_opened(good: Path, place: Path, kind: Iterable[Damage]) -> int:
    found = list(kind)
    for hostile in found:
        (bundle,) = find_bundles(spoilt(good, place, hostile))
        with pytest.raises(BundleError) as raised:
            check_intact(bundle.directory, bundle.manifest)
        assert "is not allowed in a bundle: " in str(raised.value), hostile.name
        assert hostile.says in str(raised.value), hostile.name
    return len(found)


def check_opened(good: Path, place: Path, kind: Iterable[Damage]) -> tuple[int, int]:
    """Try each in a process of its own; return how many there are, and how many were rejected."""
    problems = {}
    for hostile in kind:
        (bundle,) = find_bundles(spoilt(good, place, hostile))
        check_intact(bundle.directory, bundle.manifest)
        try:
            try_out(bundle, ENGINE, SESSION)
            problems[hostile] = ""
        except BundleError as error:
            problems[hostile] = str(error)
    for hostile, problem in problems.items():
        is_said = hostile.says in problem and str(place) in problem and problem.isprintable()
        assert is_said if problem else hostile.may_load, (hostile.name, problem)
    return len(problems), sum(map(bool, problems.values()))


def test_what_no_bundle_may_hold_is_not_opened(plain_tiny_models: Path, tmp_path: Path) -> None:
    check_never_opened(plain_tiny_models / "tiny" / "1", tmp_path / "bundle", hostile_bundles.never_opened())


def test_what_is_no_fused_graph_is_not_opened(fused_tiny_models: Path, tmp_path: Path) -> None:
    good = fused_tiny_models / "tiny" / "1"
    check_never_opened(good, tmp_path / "bundle", hostile_bundles.never_opened_fused())


def test_what_only_opening_shows_ends_a_process_of_its_own(plain_tiny_models: Path, tmp_path: Path) -> None:
    some = by_name(hostile_bundles.opened(), *SOME)
    number, refused = check_opened(plain_tiny_models / "tiny" / "1", tmp_path / "bundle", some)
    assert refused == number == len(SOME)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_all_that_only_opening_shows(plain_tiny_models: Path, fused_tiny_models: Path, tmp_path: Path) -> None:
    for models, kind in (
        (plain_tiny_models, hostile_bundles.opened),
        (fused_tiny_models, hostile_bundles.opened_fused),
    ):
        _, refused = check_opened(models / "tiny" / "1", tmp_path / "bundle", kind())
        assert refused > 10


def test_an_operator_that_ends_the_process_ends_another(plain_tiny_models: Path, tmp_path: Path) -> None:
    """Were it on the list: the trial does not depend on that."""
    (einsum,) = by_name(hostile_bundles.never_opened(), "Einsum")
    (bundle,) = find_bundles(spoilt(plain_tiny_models / "tiny" / "1", tmp_path / "bundle", einsum))
    with pytest.raises(
        BundleError, match=r"the trial process was killed by SIGABRT opening .*\.onnx; convert its checkpoint again"
    ):
        try_out(bundle, ENGINE, SESSION, command=(sys.executable, "-c", UNCHECKED + TRY))


def test_a_server_goes_on(serve: Serve, tiny_versions: Path, tmp_path: Path) -> None:
    """It answers while bundles are tried that crash or take all memory, and tries each only once."""
    models = tmp_path / "models"
    shutil.copytree(tiny_versions / "1", models / "tiny" / "1")
    running = serve(models=models, max_slots=4)
    with running.client() as client:
        before = client.translate(["Hello"], "en", "de")
        for hostile in by_name(hostile_bundles.opened(), *SOME[:2]):
            spoilt(tiny_versions / "2", tmp_path / "2", hostile).rename(models / "tiny" / "2")
            with Callers(lambda: same(client.translate(["Hello"], "en", "de"), before)) as callers:
                callers.wait_for_more(1)
                assert running.reload() is ReloadOutcome.FAILED, hostile.name
                callers.wait_for_more(1)
                assert running.reload() is ReloadOutcome.UNCHANGED
            assert not callers.failures, hostile.name
            assert callers.num_answers > 2, hostile.name
            shutil.rmtree(models / "tiny" / "2")
        assert running.metric("dragoman_model_load_failures_total", model="tiny") == 2


def same(found: object, expected: object) -> None:
    assert found == expected


def fuzz(loader: BundleLoader, good: Path, place: Path, number: int, seed: int) -> Counter[str]:
    """Change a graph at random, check it, and load what passes; what ends the loader must be rejected by a trial."""
    bundle, rng, kinds = shutil.copytree(good, place / "tiny" / "1"), random.Random(seed), Counter[str]()
    manifest = Manifest.load(good)
    graphs = {name: (good / name).read_bytes() for name in manifest.graphs.files}
    for _ in range(number):
        name = rng.choice(manifest.graphs.files)
        (bundle / name).write_bytes(mutate(graphs[name], rng))
        changed = dataclasses.replace(manifest, checksums=manifest.checksums | {name: file_sha256(bundle / name)})
        try:
            check_intact(bundle, changed)
        except BundleError as error:
            check_message(error)
            kinds["refused"] += 1
        else:
            changed.save(bundle)
            kinds[_outcome(loader, place)] += 1
        (bundle / name).write_bytes(graphs[name])
    return kinds


def _outcome(loader: BundleLoader, place: Path) -> str:
    outcome = loader.load(place)
    if outcome.kind in ("died", "late"):
        (found,) = find_bundles(place)
        with pytest.raises(BundleError, match="the trial process"):
            try_out(found, ENGINE, SESSION)
        return "ended"
    assert outcome.kind in ("refused", "loaded"), outcome
    return outcome.kind


@pytest.fixture
def loader() -> Iterator[BundleLoader]:
    loader = BundleLoader(60.0)
    yield loader
    loader.close()


MANY = [pytest.param(5000, seed, marks=[pytest.mark.full, pytest.mark.timeout(3600)]) for seed in range(2, 6)]


@pytest.mark.parametrize("models", ["plain_tiny_models", "fused_tiny_models"])
@pytest.mark.parametrize(("number", "seed"), [(30, 1), *MANY])
def test_graphs_with_random_changes(
    loader: BundleLoader,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    models: str,
    number: int,
    seed: int,
) -> None:
    good: Path = request.getfixturevalue(models) / "tiny" / "1"
    kinds = fuzz(loader, good, tmp_path / "models", number, seed)
    assert kinds["refused"]
    assert number == 30 or kinds["loaded"], "nothing is left of these graphs: no control"
