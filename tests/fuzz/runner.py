"""Runs targets under atheris, each in its own process. The only importer of atheris."""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.fuzz.bounded import MAX_BYTES, Target, bounded
from tests.fuzz.words import WORDS

try:
    import atheris
except ImportError:  # it has wheels for Linux on x86-64 only
    atheris = None

INSTRUMENTED = ("service", "export.importers", "export.architecture.config", "tests.fuzz.planted")
_HANGS_SECONDS = 60  # of wall-clock time, for one input
_RSS_MIB = 2048
_STATUS = re.compile(r"^#(\d+)\s.*?\bcov: (\d+) .*?corp: (\d+)", re.MULTILINE)
_KINDS = ("crash-", "timeout-", "oom-", "leak-")


@dataclass(frozen=True, slots=True)
class Session:
    """The outcome of fuzzing one target: inputs run, code edges seen, inputs kept, files of failing inputs."""

    target: str
    num_runs: int
    num_edges: int
    num_kept: int
    findings: tuple[Path, ...]
    log: Path


def is_available() -> bool:
    """Return whether atheris is installed."""
    return atheris is not None


def instrumented() -> Any:
    """Return a context in which imports are instrumented, so that the fuzzer knows which code it ran."""
    atheris.enabled_hooks.add("str")  # startswith and endswith tell how close a text was
    return atheris.instrument_imports(include=list(INSTRUMENTED), enable_loader_override=False)


def fuzz(name: str, target: Target, seeds: Iterable[Path], folder: Path, limit: tuple[str, int], seed: int) -> Session:
    """Fuzz one target in a forked process until it fails or `limit`, ("runs", n) or ("max_total_time", seconds).

    `folder` keeps the findings: `corpus/` grows from session to session, failing inputs and the log lie beside it.
    """
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    log, dictionary = folder / "log.txt", folder / "words.dict"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS), encoding="ascii")
    before = _findings(folder)
    arguments = [
        name,
        f"-{limit[0]}={limit[1]}",
        f"-seed={seed}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={_HANGS_SECONDS}",
        f"-rss_limit_mb={_RSS_MIB}",
        f"-artifact_prefix={folder}/",
        f"-dict={dictionary}",
        "-use_value_profile=1",
        "-len_control=20",
        str(corpus),
        *map(str, seeds),
    ]
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run(target, arguments, log)
    _, status = os.waitpid(child, 0)
    text = log.read_text(encoding="utf-8", errors="replace")
    findings = _findings(folder) - before
    if status and not findings:
        raise RuntimeError(f"{name}: the fuzzer ended with status {os.waitstatus_to_exitcode(status)}; see {log}")
    found = _STATUS.findall(text)
    runs, edges, kept = map(int, found[-1]) if found else (0, 0, 0)
    return Session(name, runs, edges, kept, tuple(sorted(findings)), log)


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def _findings(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.name.startswith(_KINDS)}


def _run(target: Target, arguments: list[str], log: Path) -> NoReturn:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    atheris.Setup(arguments, bounded(target))
    atheris.Fuzz()  # never returns; a failing input is written when the process ends
    sys.exit(1)
