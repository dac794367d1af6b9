"""Finds a folder's files by patterns of their names; some tools' files may be compressed by gzip or Zstandard."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

SUFFIXES = ("", ".gz", ".zst")
Layout = tuple[tuple[str, ...], ...]  # for each file that is needed, the patterns of the names that it may have


def find(directory: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files that match a pattern, by name, compressed or not; "FOLDER/NAME" is in a folder in it."""
    inner = {each.partition("/")[0] for each in patterns if "/" in each}
    paths = [*directory.iterdir(), *(path for name in inner for path in (directory / name).glob("*"))]
    return sorted(
        path
        for path in paths
        if path.is_file()
        and any(
            fnmatchcase(path.relative_to(directory).as_posix(), f"{each}{suffix}")
            for each in patterns
            for suffix in SUFFIXES
        )
    )


def holding(directory: Path, layout: Layout) -> list[Path] | None:
    """Return the first file of each that `layout` needs; `None` if a folder lacks one."""
    found = [find(directory, patterns) for patterns in layout]
    return [paths[0] for paths in found] if all(found) else None


def only(found: Sequence[Path], patterns: Sequence[str], what: str, problems: list[str]) -> Path | None:
    """Return the one file that `patterns` found; or `None`, and add to `problems` that there is none or several."""
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found[:5])
    problems.append(
        f"it has {len(found)} files of a {what} ({names}); keep one"
        if found
        else f"it has no {what}; expected {' or '.join(patterns)}, or one of these with .gz or .zst"
    )
    return None
