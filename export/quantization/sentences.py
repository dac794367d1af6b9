"""The sentences to calibrate and evaluate int8 on: lines of a TSV file, source<TAB>reference<TAB>set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.bundle.manifest import Manifest
from service.text.tokenizers import Tokenizer

MIN_LINES = 32
MAX_CALIBRATION_LINES = 256


class CalibrationError(Exception):
    """The calibration file can't be used; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ParallelLine:
    """A source, also as token ids, and its reference translation."""

    source: str
    source_ids: tuple[int, ...]
    reference: str


def read_lines(path: Path, manifest: Manifest, tokenizer: Tokenizer) -> list[ParallelLine]:
    """Return the lines of `path` that fit the model's first language pair.

    Raises:
        CalibrationError: it is missing, is not UTF-8, or has fewer than 32 usable lines.
    """
    pair = manifest.first_pair
    lines = []
    for source, reference in read_pairs(path):
        ids = manifest.source_ids(tokenizer.encode(source), pair)
        if len(ids) <= manifest.limits.max_source_tokens:
            lines.append(ParallelLine(source, ids, reference))
    _check_count(path, len(lines), f"source<TAB>reference, of at most {manifest.limits.max_source_tokens} tokens")
    return lines


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the sources and references in `path`, for any model: a check that there are some before hours of work.

    Raises:
        CalibrationError: as for `read_lines`.
    """
    try:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"{path} can't be read: {error}.") from error
    pairs = [(row[0], row[1]) for row in rows if len(row) >= 2 and row[0].strip() and row[1].strip()]
    _check_count(path, len(pairs), "source<TAB>reference")
    return pairs


def _check_count(path: Path, num_lines: int, wanted: str) -> None:
    if num_lines < MIN_LINES:
        raise CalibrationError(f"{path} has {num_lines} usable lines ({wanted}); int8 needs at least {MIN_LINES}.")


def split(lines: Sequence[ParallelLine]) -> tuple[list[ParallelLine], list[ParallelLine]]:
    """Split into (calibration, evaluation) lines, every other line each, so that they are disjoint."""
    return list(lines[::2][:MAX_CALIBRATION_LINES]), list(lines[1::2])
