"""The process that tries a bundle: what it finds, what ends it, and what is said of that."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.bundle.errors import CONVERT_AGAIN, BundleError
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.models.repository import FoundBundle
from service.models.trial import TrialLimits, digest_of, try_out
from service.process.memory import resident_bytes
from tests.found_bundles import find_bundles
from tests.patience import patient
from tests.servers import eventually

ENGINE, SESSION = EngineConfig(max_slots=2), SessionConfig(intra_op_threads=1)
SAY = "print('opening a.onnx', flush=True); "
READ = "import json, sys; order = json.loads(sys.stdin.readline()); "


@pytest.fixture
def found(tiny_bundle: Path, tmp_path: Path) -> FoundBundle:
    """Return a copy that a test may damage."""
    (found,) = find_bundles(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    return found


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def problem(found: FoundBundle, *command: str) -> str:
    with pytest.raises(BundleError) as raised:
        try_out(found, ENGINE, SESSION, **({"command": command} if command else {}))
    return str(raised.value)


def test_what_loading_finds_is_said_in_its_words(found: FoundBundle) -> None:
    (found.directory / "source.model").write_bytes(b"x")
    assert problem(found) == (
        f"{found.directory} is damaged: source.model does not match its checksum. Put an intact copy there, or "
        f"{CONVERT_AGAIN}."
    )


def test_what_was_tried_is_what_will_be_loaded(found: FoundBundle) -> None:
    dataclasses.replace(found.manifest, name="other").save(found.directory)
    assert problem(found) == f"{found.directory} was replaced while it was being loaded."
    assert Manifest.load(found.directory).name == "other"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{SAY}import os; os.abort()", f"was killed by SIGABRT opening a.onnx; {CONVERT_AGAIN}."),
        (f"{SAY}import os; os._exit(3)", "exited with code 3 opening a.onnx; convert its checkpoint"),
        ("import os; os._exit(0)", "exited with code 0; convert its checkpoint"),
        (
            f"{SAY}memory = bytearray(2**28); input(); input()",
            "took more than 128 MiB of memory opening a.onnx; convert",
        ),
        (f"{SAY}input(); input()", f"took more than 0.5 s opening a.onnx; {CONVERT_AGAIN}, or start"),
        (
            "import signal; signal.raise_signal(signal.SIGXCPU)",
            f"took more than 7 s of CPU time; {CONVERT_AGAIN}, or start a server with it",
        ),
    ],
)
def test_the_error_says_what_ended_it(
    found: FoundBundle, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    seconds = 0.5 if "0.5" in says else patient(60)
    monkeypatch.setattr(TrialLimits, "of", lambda *_: TrialLimits(2**27, 7, seconds))
    said = problem(found, *program(text))
    assert said.startswith(f"{found.directory} can't be loaded: the trial process {says}")
    assert "\n" not in said


def test_a_process_that_can_not_be_started(found: FoundBundle) -> None:
    assert problem(found, "/nowhere/python") == (
        f"{found.directory} can't be tried in a process of its own: No such file or directory."
    )


def test_the_order_says_what_the_server_would_do(found: FoundBundle, tmp_path: Path) -> None:
    copy = tmp_path / "order"
    session = SessionConfig(intra_op_threads=3)
    text = f"{READ}json.dump(order, open({str(copy)!r}, 'w')); print(json.dumps({{'problem': ''}}))"
    try_out(found, ENGINE, session, command=program(text))
    order = json.loads(copy.read_text(encoding="utf-8"))
    assert order["engine"] == dataclasses.asdict(ENGINE)
    assert order["session"] == dataclasses.asdict(session)


def test_limits_follow_the_sizes_of_files() -> None:
    small, large = TrialLimits.of(17 * 2**20, 128), TrialLimits.of(300 * 2**20, 128)
    assert (small.memory_bytes >> 20, small.cpu_seconds) == (784, 38)
    assert (large.memory_bytes >> 20, large.cpu_seconds) == (5312, 180)


def test_the_process_comes_after_all_others_and_ends_with_the_server(found: FoundBundle, tmp_path: Path) -> None:
    """However the server ends, the pipe to its trial closes."""
    waits = f"lambda *_: (open({str(tmp_path / 'begun')!r}, 'w').close(), time.sleep(600))"
    text = f"import time; from service.models import trial_process as t; t.try_model = {waits}; t.main()"
    bundle = {"directory": str(found.directory), "version": "", "digest": digest_of(found.manifest)}
    order = bundle | {"cpu_seconds": 60, "engine": {}, "session": {}}
    with subprocess.Popen(program(text), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        eventually((tmp_path / "begun").exists)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 10
        assert Path(f"/proc/{process.pid}/oom_score_adj").read_text(encoding="ascii") == "1000\n"
        assert resident_bytes(process.pid) > 2**20
        process.stdin.close()
        assert process.wait(patient(30)) == os.EX_UNAVAILABLE
    assert resident_bytes(process.pid) == 0
