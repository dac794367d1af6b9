"""Fixtures that several test packages share."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from service.config.server_config import ServerConfig
from service.domain.call import NO_ID, current_call
from service.models import fleet, warm_up
from tests.patience import patient
from tests.servers import REPOSITORY, InProcessServer, LoopThread, in_process
from tests.tiny_bundle import write_tiny_bundle

# The same examples in every run; `make test-full` chooses its own number by --hypothesis-profile.
settings.register_profile("short", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("full", max_examples=500, derandomize=True, deadline=None)
settings.load_profile("short")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep garbage collection from scanning the million imported objects, and from running all the time later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Extend each test's timeout by as much as this machine is slower."""
    is_fused = config.getoption("fused")
    for item in items:
        if is_fused and item.get_closest_marker("plain"):
            item.add_marker(pytest.mark.skip("it counts on plain graphs"))
        own = item.get_closest_marker("timeout")
        seconds = float(own.args[0] if own else config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(patient(seconds)), append=False)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Restore Ctrl-C: background jobs of a script ignore it, and so would the processes that these tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def imports_stay_frozen() -> Iterator[None]:
    """Keep the servers of this process from scanning them as well: 0.4 s of CPU for each model that is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "give_back", lambda **_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def steps_are_measured_briefly() -> Iterator[None]:
    """Measure a few steps for each number of slots that a loaded model may have: the others take 0.1 s of CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_up, "_MEASURED_SECONDS", 0.0)
        yield


@pytest.fixture(scope="module", autouse=True)
def what_a_module_leaves_is_frozen() -> Iterator[None]:
    """Collect what a module's tests and servers left behind, and keep what stays from being scanned from now on."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def outside_of_calls() -> Iterator[None]:
    """Run each test in a context of its own, or later tests would be part of a call that it began."""
    yield
    assert current_call().request_id == NO_ID


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fused", action="store_true", help="Serve the tiny model by fused graphs instead of plain ones.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write how many seconds each test took, set-up and clean-up included, for `make test-slowest`."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in (each for reports in reporter.stats.values() for each in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] += report.duration
    path = REPOSITORY / "build" / "tests.json"
    path.parent.mkdir(exist_ok=True)
    slowest = sorted(seconds.items(), key=lambda each: -each[1])
    path.write_text(json.dumps({test: round(each, 2) for test, each in slowest}, indent=0))


@pytest.fixture(scope="session")
def tiny_models(request: pytest.FixtureRequest) -> Path:
    """Return a repository with one tiny model, `tiny`, from en to de."""
    kind = "fused_tiny_models" if request.config.getoption("fused") else "plain_tiny_models"
    models: Path = request.getfixturevalue(kind)
    return models


@pytest.fixture(scope="session")
def plain_tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return `tiny_models` of plain graphs."""
    root = tmp_path_factory.mktemp("models")
    write_tiny_bundle(root / "tiny" / "1")
    return root


@pytest.fixture(scope="session")
def fused_tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return `tiny_models` of fused graphs, which all processes of a run share."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fused_models"
    with FileLock(root.with_suffix(".lock")):
        if not root.exists():
            staging = root.with_suffix(".staging")
            staging.mkdir()
            # A process of its own: this one should not import what exporting needs.
            subprocess.run(
                [sys.executable, "-m", "tests.tiny_fused_bundle", staging / "tiny" / "1"], check=True, cwd=REPOSITORY
            )
            staging.rename(root)
    return root


@pytest.fixture(scope="session")
def tiny_bundle(tiny_models: Path) -> Path:
    """Return the bundle of that model."""
    return tiny_models / "tiny" / "1"


@pytest.fixture(scope="session")
def tiny_versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with four versions of `tiny`, each with its own weights, for tests to copy from."""
    root = tmp_path_factory.mktemp("versions")
    for version in range(1, 5):
        write_tiny_bundle(root / str(version), seed=version)
    return root


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    """Yield the event loop that all in-process servers share."""
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def serve(loop_thread: LoopThread, tiny_models: Path) -> Iterator[Callable[..., InProcessServer]]:
    """Start in-process servers of the tiny model: `serve(max_slots=1, load=False)`."""
    with _starting(loop_thread, tiny_models) as start:
        yield start


@pytest.fixture(scope="module")
def share(loop_thread: LoopThread, tiny_models: Path) -> Iterator[Callable[..., InProcessServer]]:
    """Start in-process servers for all tests of a module, likewise."""
    with _starting(loop_thread, tiny_models) as start:
        yield start


@contextmanager
def _starting(loop: LoopThread, models: Path) -> Iterator[Callable[..., InProcessServer]]:
    with ExitStack() as stack:

        def start(load: bool = True, **settings: object) -> InProcessServer:
            of_tests = {"models": models, "num_threads": 1, "grace_seconds": patient(5.0)}
            config = ServerConfig(**(of_tests | settings))  # type: ignore[arg-type]
            return stack.enter_context(in_process(loop, config, load))

        yield start
