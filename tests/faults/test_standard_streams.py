"""Standard output and standard error that are full, closed or never read.

A server answers and stops as usual; a command reports it in one line and by its exit code.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client
from service.cli.errors import ExitCode
from tests.faults.conftest import Start
from tests.patience import patient
from tests.servers import REPOSITORY, distinct_texts, environment, eventually

STOP_SECONDS = patient(10.0)  # of a server without calls; half a second on an idle machine
FORMATS = ("text", pytest.param("json", marks=pytest.mark.full))  # which one stream writes


@pytest.fixture
def full_pipe() -> Iterator[int]:
    """Yield the write end of a full pipe that is never read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("log_format", FORMATS)
def test_streams_that_nobody_reads_hold_up_neither_the_start_nor_calls_nor_a_stop(
    start: Start, full_pipe: int, log_format: str
) -> None:
    noisy = ("--log-level", "debug", "--access-log-ratio", "1", "--log-format", log_format)
    process = start(*noisy, ready=False, stdout=full_pipe, stderr=full_pipe)

    def is_ready() -> bool:
        try:
            return process.get("/readyz")[0] == 200
        except OSError:
            return False

    eventually(is_ready)
    with Client(process.address) as client:
        for text in distinct_texts(20):
            assert client.translate([text], "en", "de")
    process.signal(signal.SIGTERM)
    assert process.wait(STOP_SECONDS)[0] == 0


def test_a_second_signal_does_not_wait_for_who_reads_the_log(start: Start, full_pipe: int) -> None:
    process = start("--drain-delay-seconds", "60", stderr=full_pipe)
    process.signal(signal.SIGTERM)
    eventually(lambda: process.get("/readyz")[2].strip() == "draining")
    process.signal(signal.SIGTERM)
    assert process.wait(STOP_SECONDS)[0] == 128 + signal.SIGTERM


def run(command: str, redirected: str, **how: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run a command by a shell, as no other program starts one without standard output."""
    line = f"exec {sys.executable} -m service {command} {redirected}"
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=REPOSITORY, env=environment(), capture_output=True, timeout=patient(60), **how
    )


COMMANDS = (
    "serve --port 0 --metrics-port 0 --admin-port -1",
    "config",
    "key new somebody",
    "translate --server {address} --to de --stream Hello",
    "--help",
)
MORE = ("models --server {address}", "detect --server {address} Hello", "translate --server {address} --to de Hello")


@pytest.mark.parametrize(
    ("redirected", "reason", "commands"),
    [
        (">/dev/full", b"No space left on device.", COMMANDS),
        (">&-", b"it is closed.", ("config",)),
        pytest.param(">/dev/full", b"No space left on device.", MORE, marks=pytest.mark.full),
        pytest.param(">&-", b"it is closed.", COMMANDS[:1], marks=pytest.mark.full),
    ],
)
def test_standard_output_that_can_t_be_written(
    start: Start, tiny_models: Path, redirected: str, reason: bytes, commands: tuple[str, ...]
) -> None:
    address = start().address if any("{address}" in command for command in commands) else ""
    for command in commands:
        place = f"--models {tiny_models}" if command.startswith(("serve", "config")) else ""
        ended = run(f"{command.format(address=address)} {place}", redirected)
        told = ended.stderr.splitlines()[command.startswith("key") :]  # the first line is the key
        expected = (ExitCode.IO_ERROR, [b"dragoman: writing to standard output failed: " + reason])
        assert (ended.returncode, told) == expected, command
    if commands[-1] == "config":
        ended = run("config", f"{redirected} 2>&-")
        assert (ended.returncode, ended.stdout, ended.stderr) == (ExitCode.IO_ERROR, b"", b"")


def test_standard_error_that_can_t_be_written(tiny_models: Path) -> None:
    codes = {
        "config": ExitCode.OK,
        "key new somebody": ExitCode.IO_ERROR,  # its key is printed there, and nowhere else
        "translate": ExitCode.USAGE,
        "translate --server 127.0.0.1:1 --to de Hello": ExitCode.NO_SERVER,
        f"serve --port 0 --models {tiny_models}/tiny/1/source.model --metrics-port 0 --admin-port 0": ExitCode.CONFIG,
    }
    for command, code in codes.items():
        ended = run(command, "2>/dev/full")
        assert (ended.returncode, bool(ended.stdout)) == (code, command == "config"), command
    assert run("key new somebody", "2>&-").returncode == ExitCode.IO_ERROR


def test_who_reads_standard_output_goes_away(tiny_models: Path) -> None:
    for command in ("config", f"serve --models {tiny_models} --port 0 --metrics-port 0 --admin-port -1"):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen(
            [sys.executable, "-m", "service", *command.split()],
            cwd=REPOSITORY,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
        )
        os.close(writing)
        try:
            assert (process.communicate(timeout=patient(60))[1], process.returncode) == (b"", ExitCode.BROKEN_PIPE)
        finally:
            process.kill()


def test_no_other_file_gets_the_number_of_a_closed_one(start: Start, tiny_models: Path) -> None:
    """Otherwise a warning would be sent to a caller, or be written into a file."""
    line = f'exec {sys.executable} -c \'import os, service.cli as c; os.close(os.open(".", 0)); '
    line += 'print([os.readlink(f"/proc/self/fd/{n}") for n in (0, 2)])\' <&- 2>&-'
    ended = subprocess.run(["/bin/sh", "-c", line], cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE)
    assert ended.stdout.decode() == "['/dev/null', '/dev/null']\n"
