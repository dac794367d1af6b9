"""Checkpoints made to harm whoever converts them: they are refused in a line, in seconds and with little memory."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import zstandard

from export.changed_checkpoint import NO_CHANGES, changed
from export.importers.imported import CheckpointError
from export.importers.selection import import_checkpoint
from tests.export.importers.marian_files.folders import opus, student
from tests.fuzz.checkpoint_targets import CHECKPOINTS, Sample
from tests.patience import patient
from tests.servers import REPOSITORY

MOST_KILOBYTES = 700_000  # a good checkpoint takes 250,000
MEASURED = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
)
QUICK = ("marian", "bart", "t5", "student")  # kinds whose files are read by different code
ZEROS = bytes(2**20)
NAMES = ("generation_config.json", "metadata.json", "decoder.yml", "lex.bin", "LICENSE", "tokenizer.json")


def _laughs(folder: Path, size: int) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    opus(folder, "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x]", *levels, "word-penalty: *a11\n"]))


def _merges(folder: Path, size: int) -> None:
    levels = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    opus(folder, "\n".join(["a0: &a0 {x: 1}", *levels, "models: *a11\n"]))


def _lexicon(folder: Path, size: int) -> None:
    (student(folder) / "lex.50.50.ende.s2t.bin").unlink()
    with (folder / "lex.bin.zst").open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
        for _ in range(size // len(ZEROS)):
            writer.write(ZEROS)


def _archive(folder: Path, size: int) -> None:
    for path in opus(folder).glob("*.npz"):
        _zip(path, "special:model.yml.npy", size)


def _package(folder: Path, size: int) -> None:
    folder.mkdir()
    _zip(folder / "a.argosmodel", "a/model/model.bin", size)
    with zipfile.ZipFile(folder / "a.argosmodel", "a") as archive:
        archive.writestr("a/metadata.json", '{"from_code": "en", "to_code": "de"}')


def _zip(path: Path, name: str, size: int) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size // len(ZEROS)):
            member.write(ZEROS)


def _shape(folder: Path, size: int) -> None:
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592,), }\n"
    for path in opus(folder).glob("*.npz"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("Wemb.npy", b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head)


ATTACKS = {
    "aliases": (_laughs, "line 2: an alias"),
    "merges": (_merges, "line 2: an alias"),
    "zstandard": (_lexicon, "unpacks to more than"),
    "npz": (_archive, "bytes; allowed: "),
    "package": (_package, "bytes; allowed: "),
    "shape": (_shape, "needs 34359738368 bytes"),
}


@pytest.mark.timeout(patient(200))
@pytest.mark.parametrize("size", [2**29, pytest.param(2**32, marks=pytest.mark.full)])
@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_refused_in_seconds(attack: str, size: int, tmp_path: Path) -> None:
    inflict, says = ATTACKS[attack]
    inflict(tmp_path / "folder", size)
    given = [*(tmp_path / "folder").glob("*.argosmodel"), tmp_path / "folder"][0]
    answer, kilobytes = _doctor(given)
    refused = [line for line in answer.splitlines() if line.startswith("refused")]
    assert any(says in line for line in refused), answer
    assert max(map(len, refused)) < 2000
    assert kilobytes < MOST_KILOBYTES, f"{kilobytes / 1e6:.1f} GB"


def _doctor(path: Path) -> tuple[str, int]:
    """Return what `doctor` says of a checkpoint that it refuses, and its memory."""
    command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "export", "doctor", str(path)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=patient(90))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    answer, _, kilobytes = output.rstrip().rpartition("\n")
    assert process.returncode == 1, output
    return answer, int(kilobytes)


@pytest.mark.timeout(patient(300))
@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.full) for kind in CHECKPOINTS]
)
def test_no_pipe_among_its_files_is_waited_for(kind: str, tmp_path: Path) -> None:
    sample = CHECKPOINTS[kind](tmp_path / kind)
    for path in dict.fromkeys([*sample.files, *(sample.path.parent / sample.path.name / name for name in NAMES)]):
        if path.parent.is_dir():
            _with_a_pipe(path, sample)


def _with_a_pipe(path: Path, sample: Sample) -> None:
    kept = path.with_name(f"{path.name}.kept")
    existed = path.exists()
    if existed:
        path.rename(kept)
    os.mkfifo(path)
    try:
        with contextlib.suppress(CheckpointError), changed(sample.path, NO_CHANGES) as (given, _):
            import_checkpoint(given, sample.kind, sample.options)
    finally:
        path.unlink()
        if existed:
            shutil.move(kept, path)
