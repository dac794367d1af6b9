"""Tries a bundle in a process of its own before a server that is running loads it.

ONNX Runtime was not made for untrusted graphs: an operator may end the process, and folding constants may take all
memory and hours. The trial does all that loading does, with the same settings, at a lower priority, and within limits
of memory and time by the sizes of the files. A starting server tries nothing, as a crash could not end anything that
serves.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import service
from service.bundle.errors import CONVERT_AGAIN, BundleError
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.models.repository import FoundBundle
from service.models.warm_up import SLOT_COUNTS
from service.process.lifecycle import POLL_SECONDS
from service.process.memory import resident_bytes

_COMMAND = (sys.executable, "-P", "-m", "service.models.trial_process")


@dataclasses.dataclass(frozen=True, slots=True)
class TrialLimits:
    """Limits of a trial, far above its needs: those of the shipped models take 170 MiB and 1 s."""

    memory_bytes: int
    cpu_seconds: int
    seconds: float

    @classmethod
    def of(cls, num_bytes: int, max_slots: int) -> "TrialLimits":
        """Return the limits for a bundle of this size, served with at most `max_slots`.

        Two sessions may each have weights as read and as packed, and opening takes as much again. First tokens in a
        slot take some hundredths of a model's size. A busy server leaves a tenth of the CPUs.
        """
        cpu_seconds = 30 + (num_bytes >> 21)
        return cls(2**29 + num_bytes * (8 + max_slots // 16), cpu_seconds, 10.0 * cpu_seconds)


def try_out(
    bundle: FoundBundle,
    engine_config: EngineConfig,
    session_config: SessionConfig,
    command: Sequence[str] = _COMMAND,
) -> None:
    """Load and test a bundle in a process, started by `command`, that ends with this one; return if all is well."""
    files = (bundle.directory / name for name in bundle.manifest.checksums)
    on_disk = [(status.st_size, 512 * status.st_blocks) for status in (file.stat() for file in files if file.is_file())]
    num_bytes = sum(map(min, on_disk))  # a hole in a file would raise the limits at no cost
    limits = TrialLimits.of(num_bytes, engine_config.max_slots or max(SLOT_COUNTS))
    order = {
        "directory": str(bundle.directory),
        "version": bundle.version,
        "digest": digest_of(bundle.manifest),
        "cpu_seconds": limits.cpu_seconds,
        "engine": dataclasses.asdict(engine_config),
        "session": dataclasses.asdict(session_config),
    }
    try:
        with _process(command) as process:
            why = _watched(process, json.dumps(order), limits)
            problem = _problem(process, bundle.directory, why, limits)
    except OSError as error:
        raise BundleError(f"{bundle.directory} can't be tried in a process of its own: {error.strerror}.") from error
    if problem:
        raise BundleError(problem)


def digest_of(manifest: Manifest) -> str:
    """Return a digest that identifies a manifest and, by its checksums, the bundle."""
    return hashlib.sha256(repr(manifest).encode("utf-8", "backslashreplace")).hexdigest()


@contextlib.contextmanager
def _process(command: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a process with the environment of this one; kill it at the end of the `with` block."""
    root = Path(service.__file__).parent.parent  # it may be in the folder that the server was started in
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # nothing is left to be written when it has ended
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,  # a terminal's signals are for the server
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _watched(process: "subprocess.Popen[bytes]", order: str, limits: TrialLimits) -> str:
    """Wait for the end of a trial, or end it; return which limit it exceeded."""
    assert process.stdin is not None
    end_seconds = time.monotonic() + limits.seconds
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{order}\n".encode("ascii"))
        process.stdin.flush()
    why = ""
    while process.poll() is None and not why:
        time.sleep(POLL_SECONDS)
        # A limit of the system's (RLIMIT_DATA) counts what is reserved, most of which slots never use.
        if resident_bytes(process.pid) > limits.memory_bytes:
            why = f"took more than {limits.memory_bytes >> 20} MiB of memory"
        elif time.monotonic() > end_seconds:
            why = f"took more than {limits.seconds:g} s"
    process.kill()
    process.wait()
    return why


def _problem(process: "subprocess.Popen[bytes]", directory: Path, why: str, limits: TrialLimits) -> str:
    """Return what is wrong with a bundle whose trial has ended, or nothing; `why` is the limit that it exceeded."""
    assert process.stdout is not None
    lines = process.stdout.read().decode("utf-8", "replace").splitlines()
    code = process.returncode
    if not why and code == 0 and lines:
        return str(json.loads(lines[-1])["problem"])
    if not why and code == -signal.SIGXCPU:
        why = f"took more than {limits.cpu_seconds} s of CPU time"
    advice = f"{CONVERT_AGAIN}, or start a server with it: there is no limit at the start" if why else CONVERT_AGAIN
    why = why or (f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}")
    where = f" {lines[-1]}" if lines else ""
    return f"{directory} can't be loaded: the trial process {why}{where}; {advice}."
