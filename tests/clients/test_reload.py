"""Models replaced under load in a server process: no call fails, and one version alone answers each call."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from dragoman_client import Client
from service.bundle.manifest import Manifest
from tests.callers import Callers
from tests.clients.command_line import dragoman_here
from tests.grpc_calls import request_of, stub_of
from tests.patience import patient
from tests.servers import ServerProcess, eventually, samples
from tests.slow_file import slow_to_open
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations, put_bundle

NUM_CALLERS = 4


@pytest.fixture
def start() -> Iterator[Callable[..., ServerProcess]]:
    processes = []

    def run(models: Path, *arguments: Any) -> ServerProcess:
        processes.append(ServerProcess(models, "--max-slots", "8", *arguments))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()


@pytest.fixture
def models(tiny_versions: Path, tmp_path: Path) -> Path:
    """Return a folder of models with the first version."""
    folder = tmp_path / "models"
    folder.mkdir()
    put_bundle(folder, tiny_versions / "1")
    return folder


class Answer(NamedTuple):
    began: float
    ended: float
    version: str
    texts: tuple[str, ...]


def ask(stub: Any, answers: list[Answer], *, is_long: bool) -> None:
    """Make a call, and add its answer."""
    request = request_of(GOLDEN_TEXTS)
    if is_long:  # tokenized on another thread, so the model may have been replaced meanwhile
        request.texts.extend(["Hello " * 8] * 100)
        request.texts.extend(GOLDEN_TEXTS)
    began = time.monotonic()
    response = stub.Translate(request, timeout=patient(30))
    texts = tuple(each.text for each in response.translations)
    known = texts[: len(GOLDEN_TEXTS)]
    if is_long:
        assert texts[-len(GOLDEN_TEXTS) :] == known
        assert len(set(texts[len(known) : -len(known)])) == 1
    answers.append(Answer(began, time.monotonic(), response.model_version, known))


def reloads(server: ServerProcess, outcome: str) -> float:
    text = server.get("/metrics")[2]
    (count,) = samples(text, rf'dragoman_reloads_total{{outcome="{outcome}"}}')
    return count


def reload(server: ServerProcess) -> None:
    """Send SIGHUP, and wait until the reload has finished."""
    before = reloads(server, "changed")
    server.signal(signal.SIGHUP)
    eventually(lambda: reloads(server, "changed") > before)


def test_no_call_fails_while_versions_come_and_go(
    start: Callable[..., ServerProcess], models: Path, tiny_versions: Path
) -> None:
    server = start(models)
    expected = {("1", 0): "1", ("2", 1): "2", ("2", 2): "3"}  # version, reloads so far: weights
    translations = {weights: tuple(golden_translations(tiny_versions / weights)) for weights in "123"}
    assert len(set(translations.values())) == 3  # otherwise this test proves nothing
    swaps, answers = [], list[Answer]()

    def wait_for_more_answers() -> None:
        goal = len(answers) + 34
        eventually(lambda: len(answers) >= goal or bool(callers.failures))

    with ExitStack() as stack:
        connected = partial(stub_of, server.address, enable_retries=0, use_local_subchannel_pool=1)
        stubs = [stack.enter_context(connected()) for _ in range(NUM_CALLERS)]
        calls = [partial(ask, stub, answers, is_long=bool(number % 2)) for number, stub in enumerate(stubs)]
        callers = stack.enter_context(Callers(*calls, pause_seconds=0.03))
        wait_for_more_answers()
        for bundle, version in (("2", "2"), ("3", "2")):
            put_bundle(models, tiny_versions / bundle, version=version)
            began = time.monotonic()
            reload(server)
            swaps.append((began, time.monotonic()))
            wait_for_more_answers()
        health = server.get("/readyz")
    assert callers.failures == []
    assert health[0] == 200
    assert len(answers) >= 100
    for answer in answers:
        before = sum(ended < answer.began for _, ended in swaps)  # reloads that had finished when the call began
        after = sum(began < answer.ended for began, _ in swaps)  # reloads that had begun when it ended
        allowed = {translations[weights] for (version, n), weights in expected.items()
                   if before <= n <= after and version == answer.version}  # fmt: skip
        assert answer.texts in allowed
    seen = {answer.texts for answer in answers}
    assert seen == set(translations.values())
    order = [translations[weights] for weights in "123"]
    by_end = sorted(answers, key=lambda answer: answer.ended)
    for answer in answers:  # after a new version has answered, no later call gets an older one
        newest = max((order.index(each.texts) for each in by_end if each.ended < answer.began), default=0)
        assert order.index(answer.texts) >= newest
    server.signal(signal.SIGTERM)
    code, out, errors = server.wait()
    assert (code, out) == (0, "")
    told = [line.partition(" ")[2] for line in errors.splitlines()]
    assert told == ["INFO dragoman.reloads: models were reloaded (changed); served: tiny/2"] * len(swaps)


def test_a_server_that_looks_by_itself_finds_what_is_new_and_what_is_gone(
    start: Callable[..., ServerProcess], models: Path, tiny_versions: Path, tmp_path: Path
) -> None:
    server = start(models, "--reload-seconds", "0.05", "--max-versions", "2")

    def served() -> list[tuple[str, str]]:
        with Client(server.address) as client:
            return [(model.name, model.version) for model in client.models()]

    eventually(lambda: reloads(server, "unchanged") >= 2)
    put_bundle(models, tiny_versions / "2")
    eventually(lambda: served() == [("tiny", "2"), ("tiny", "1")])
    other = shutil.copytree(tiny_versions / "3", tmp_path / "3")
    (other / "encoder.onnx").write_bytes(b"damaged")
    put_bundle(models, other)
    eventually(lambda: reloads(server, "failed") == 1)
    unchanged = reloads(server, "unchanged")
    eventually(lambda: reloads(server, "unchanged") > unchanged + 2)
    assert served() == [("tiny", "2"), ("tiny", "1")]

    run = dragoman_here("models", "--server", server.address)
    assert [line.split()[:2] for line in run.stdout.decode().splitlines()[1:]] == [["tiny", "2"], ["tiny", "1"]]
    for version in "12":
        asked = ("--model", "tiny", "--model-version", version, "--to", "de", GOLDEN_TEXTS[0])
        run = dragoman_here("translate", "--server", server.address, *asked)
        assert (run.returncode, run.stderr) == (0, b"")
        assert run.stdout.decode() == golden_translations(tiny_versions / version)[0] + "\n"
    for given in (("--from", "en"), ()):
        asked = ("--model", "tiny", "--model-version", "3", "--to", "de", *given, "Hello")
        run = dragoman_here("translate", "--server", server.address, *asked)
        assert run.returncode == 2
        assert b"version '3' of model 'tiny' is not served" in run.stderr
        assert b"2, 1" in run.stderr
    run = dragoman_here("translate", "--server", server.address, "--model-version", "1", "--to", "de", "Hello")
    assert run.returncode == 2
    assert b"--model-version needs --model" in run.stderr

    server.signal(signal.SIGTERM)
    code, out, errors = server.wait()
    # Once each, however often it checked.
    assert [line for line in errors.splitlines() if "WARNING" not in line and "reloaded (changed)" not in line] == []
    (line,) = [line for line in errors.splitlines() if "WARNING" in line]
    assert (code, out) == (0, "")
    assert f"{models / 'tiny' / '3'} is damaged: encoder.onnx does not match its checksum" in line


@pytest.mark.parametrize("stage", ["looking", "loading"])
def test_a_stop_signal_during_a_reload_ends_cleanly(
    start: Callable[..., ServerProcess], models: Path, tiny_versions: Path, tmp_path: Path, stage: str
) -> None:
    server = start(models)
    slow = shutil.copytree(tiny_versions / "2", tmp_path / "2")
    with (slow / "endless").open("wb") as file:
        file.truncate(1 << 36)  # a sparse file: uses no disk space, but takes long to check
    manifest = Manifest.load(slow)
    manifest.checksums["endless"] = "0" * 64
    manifest.save(slow)
    (models / "tiny" / "2").symlink_to(slow)
    with Client(server.address) as client, ExitStack() as stack:
        if stage == "looking":
            is_there = stack.enter_context(slow_to_open(slow / "manifest.json"))
        else:
            is_there = lambda: any(link.endswith("endless") for link in open_files(server))  # noqa: E731
        server.signal(signal.SIGHUP)
        eventually(is_there)
        assert client.translate(["Hello"], "en", "de")
        children = psutil.Process(server.process.pid).children(recursive=True)
        server.signal(signal.SIGTERM)
        assert server.wait(timeout_seconds=patient(10)) == (0, "", "")
    eventually(lambda: not any(child.is_running() for child in children))


def open_files(server: ServerProcess) -> list[str]:
    """Return what the server has open, and the process in which it tries a bundle."""
    links = []
    own = psutil.Process(server.process.pid)
    for process in (own, *own.children(recursive=True)):
        for entry in Path(f"/proc/{process.pid}/fd").glob("*"):
            with suppress(OSError):  # closed meanwhile
                links.append(str(entry.readlink()))
    return links
