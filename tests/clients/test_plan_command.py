"""`dragoman plan` as a user runs it: a server is started, measured and stopped, whatever ends the command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.cli.main import run as run_command
from tests.patience import patient
from tests.servers import REPOSITORY, dragoman, environment, eventually, free_port


def plan(models: Path, *arguments: str, **variables: str) -> Any:
    given = ("--models", str(models), "--rate", "10", "--seconds", "3", "--p99", "2s", *arguments)
    return dragoman("plan", *given, stdin=None, timeout_seconds=90, **variables)


def children(process: int) -> list[int]:
    """Return the processes that this one has started."""
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


@pytest.fixture
def started(tiny_models: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "service", "plan", "--models", str(tiny_models), "--rate", "10", "--p99", "9s"]
    pipes: Any = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment(), text=True, **pipes) as process:
        yield process
        process.kill()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="callers need a CPU beside the server's")
def test_a_plan_from_a_real_measurement(tiny_models: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample.txt"
    sample.write_text("Hello\n\nWhere is the train station?\nSave the file.\n")
    # What a real server would need, and would be reached by: none of it is used.
    served = {"DRAGOMAN_SERVE_PORT": str(free_port()), "DRAGOMAN_SERVE_API_KEYS": "/no/such/file"}
    run = plan(tiny_models, "--file", str(sample), "--format", "json", "--num-threads", "1", **served)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert found["capacity"] > 0
    assert 0 < found["pod_rate"] <= 1.3 * max(point["rate"] for point in found["points"])
    assert all(point["num_calls"] for point in found["points"])
    assert 0 < found["load"] < 2
    assert found["last"]["slots"].keys() == {"tiny"}
    advice = found["advice"]
    assert advice["pods"] >= 2
    assert advice["cpus"] == 1
    assert not any("sample" in note for note in found["notes"])  # it was given


@pytest.mark.full
def test_an_objective_that_can_not_be_kept_is_said(tiny_models: Path) -> None:
    run = plan(tiny_models, "--p99", "0.001ms")
    assert run.returncode == 65
    assert b"no rate keeps a p99 of" in run.stderr
    assert run.stdout == b""


@pytest.mark.full
def test_values_for_the_chart(tiny_models: Path) -> None:
    run = plan(tiny_models, "--format", "values")
    pool = yaml.safe_load(run.stdout)["pools"]["default"]
    assert pool["replicas"] >= pool["autoscaling"]["minReplicas"]
    text = plan(tiny_models)
    assert b"a pod keeps it up to" in text.stdout
    assert b"# note: the texts are the model's test sentences" in text.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_it_ends_the_server(started: "subprocess.Popen[str]", number: signal.Signals) -> None:
    assert started.stderr is not None
    while not started.stderr.readline().startswith("ready after"):
        assert started.poll() is None
    (server,) = children(started.pid)
    started.send_signal(number)
    assert started.wait(patient(30)) == 130
    eventually(lambda: not Path(f"/proc/{server}").exists())


@pytest.mark.parametrize(
    ("arguments", "code", "fragments"),
    [
        (("--p99", "fast"), 2, ["'fast'", "200ms"]),
        (("--rate", "0"), 2, ["rate"]),
        (("--model", "huge"), 2, ["'huge'", "tiny"]),
        (("--to", "fr"), 2, ["tiny", "fr"]),
        (("--num-threads", "1000"), 2, ["1000", "CPUs"]),
        (("--file", "/no/such/file"), 66, ["/no/such/file"]),
        (("--file", "/dev/null"), 65, ["no text"]),
        (("--models", "/no/such/folder"), 78, ["/no/such/folder"]),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(
    tiny_models: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    fragments: list[str],
) -> None:
    assert run_command(("plan", "--models", str(tiny_models), "--rate", "10", "--p99", "9s", *arguments)) == code
    said = capsys.readouterr().err
    assert all(fragment in said for fragment in fragments), said
    assert "starting" not in said


def test_a_server_that_does_not_start_is_quoted(tiny_models: Path) -> None:
    run = plan(tiny_models, "--device", "cuda")
    assert run.returncode == 78
    assert b"did not become ready" in run.stderr
