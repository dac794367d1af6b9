"""Loads bundles in a separate process, which native code may crash, block or fill with memory.

Reads one line with a path, writes one line of JSON with the outcome, and so on.
"""

import contextlib
import json
import queue
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import patient
from tests.servers import REPOSITORY, environment, read_line

MEMORY_BYTES = 6 * 2**30  # of address space: protects the machine from bundles that need more


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind` is "refused" (a BundleError), "loaded", "raised" (another error), "late" or "died"."""

    kind: str
    message: str
    seconds: float
    peak_mib: float = 0.0


class BundleLoader:
    """Loads one bundle after another; a process that died or was late is replaced."""

    def __init__(self, limit_seconds: float) -> None:
        """Take the time for each on a machine that is neither slow nor busy."""
        self._limit_seconds = limit_seconds
        self._process: subprocess.Popen[str] | None = None

    def load(self, path: Path) -> Outcome:
        process = self._running()
        assert process.stdin is not None
        started = time.monotonic()
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        try:
            line = read_line(process, self._limit_seconds)
            return Outcome(**json.loads(line), seconds=time.monotonic() - started)
        except queue.Empty:
            kind, message = "late", "no end in time"
        except AssertionError:
            kind, message = "died", f"exit code {process.wait(patient(30))}"
        self.close()
        return Outcome(kind, message, time.monotonic() - started)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(patient(30))
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            self._process = None

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.bundle_loader"],
                cwd=REPOSITORY,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert read_line(self._process) == "ready\n"
        return self._process


def _load(path: Path) -> dict[str, Any]:
    from service.bundle.errors import BundleError

    try:
        message = _try(path)
        kind = "loaded"
    except BundleError as error:
        kind, message = "refused", str(error)
    except BaseException as error:
        kind, message = "raised", f"{type(error).__name__}: {error}"
    return {"kind": kind, "message": message, "peak_mib": _peak_mib()}


def _peak_mib() -> float:
    """Return the most memory that this process has had; `getrusage` would count that of pytest's, its parent, too."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _try(path: Path) -> str:
    """Load, describe and use a bundle; return its output for the first golden sentence."""
    from service.engine.config import EngineConfig
    from service.engine.runtime.session import SessionConfig
    from service.engine.sequence import Sequence
    from service.faces.dragoman.messages import model_documents
    from service.faces.grpc.pb.dragoman.v1.translation_pb2 import Model
    from service.faces.kserve.methods import config_to_pb, metadata_to_pb, statistics_to_pb
    from service.models.catalogue import Catalogue
    from service.models.loaded_model import InferenceStatistics
    from service.models.loader import load_model
    from tests.found_bundles import find_bundles
    from tests.unit.engine.recorder import Recorder

    listener = Recorder()
    (bundle,) = find_bundles(path)
    session_config = SessionConfig(intra_op_threads=1)
    model = load_model(bundle, EngineConfig(max_slots=4), session_config, listener, InferenceStatistics())
    try:
        [document] = model_documents(Catalogue([model]))
        for message in (Model(**document), metadata_to_pb(model, ["1"]), config_to_pb(model), statistics_to_pb(model)):
            message.SerializeToString()
        source_ids = model.manifest.golden[0].source_ids
        model.engine.submit([Sequence(source_ids, model.default_options, time.monotonic())])
        listener.wait(1)
        (update,) = listener.updates
        if update.error is not None:
            raise update.error
        return model.tokenizer.decode(update.hypotheses[0].token_ids)
    finally:
        model.engine.stop(patient(10))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        import service.models.loader  # noqa: F401  # not a part of the first bundle's time

        print("ready", file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(_load(Path(line.removesuffix("\n")))), file=out, flush=True)


if __name__ == "__main__":
    main()
