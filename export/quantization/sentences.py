"""The sentences that int8 is calibrated and judged on: lines of a TSV file, source<TAB>reference<TAB>set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.bundle.manifest import Manifest
from service.text.tokenizers import Tokenizer

MIN_LINES = 32
MAX_CALIBRATION_LINES = 256


class CalibrationError(Exception):
    """The calibration file can't be used; the message says why."""


@dataclass(frozen=True, slots=True)
class ParallelLine:
    """A source, also as token ids, and its reference translation."""

    source: str
    source_ids: tuple[int, ...]
    reference: str


def read_lines(path: Path, manifest: Manifest, tokenizer: Tokenizer) -> list[ParallelLine]:
    """The lines of `path` that fit the model's first language pair.

    Raises:
        CalibrationError: it is missing, no UTF-8, or has fewer than 32 usable lines.
    """
    try:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"{path} can't be read: {error}.") from error
    pair = manifest.first_pair
    lines = []
    for row in rows:
        if len(row) < 2 or not row[0].strip() or not row[1].strip():
            continue
        ids = manifest.source_ids(tokenizer.encode(row[0]), pair)
        if len(ids) <= manifest.limits.max_source_tokens:
            lines.append(ParallelLine(row[0], ids, row[1]))
    if len(lines) < MIN_LINES:
        raise CalibrationError(
            f"{path} has {len(lines)} usable lines (source<TAB>reference, of at most "
            f"{manifest.limits.max_source_tokens} tokens); int8 needs at least {MIN_LINES}."
        )
    return lines


def split(lines: Sequence[ParallelLine]) -> tuple[list[ParallelLine], list[ParallelLine]]:
    """(to calibrate on, to judge by): every other line each, so that neither sees the other's."""
    return list(lines[::2][:MAX_CALIBRATION_LINES]), list(lines[1::2])
