"""The output of a run: a folder of parts, each there as a whole or not at all, which is what a resumed run goes by."""

import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from service.bulk.table import TableFormat
from service.process.disk import flush

_RECORD = "_run.json"  # readers of folders of Parquet or CSV skip what begins so
_PARTIAL = f".{'[0-9a-f]' * 32}.*"  # what is being written


class OtherRun(Exception):
    """The output has parts of a run with other inputs, options or models; a message of one line."""


class Parts:
    """The parts in a folder, named by the numbers of input file and chunk, so that their order is that of the rows."""

    def __init__(self, folder: Path, form: TableFormat) -> None:
        self.folder = folder
        self._format = form

    def begin(self, run: Mapping[str, Any]) -> None:
        """Create the folder for a run, or continue an earlier one; several shards may do so at once.

        `run` is what all parts depend on, as JSON; of its "inputs", only those that have parts must stay the same.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / _RECORD
        # Looked for before the record is: other shards write it before their first part.
        has_others = any(not each.name.startswith((".", "_")) for each in self.folder.iterdir())
        if not path.exists():
            if has_others:
                raise OtherRun(f"{self.folder} has files that 'dragoman bulk' did not write; name a new folder.")
            self._replace(path, lambda partial: _write_json(partial, run))
        found = json.loads(path.read_text())
        old, new = (list(each["inputs"].items()) for each in (found, run))
        begun = sorted({int(each.name.split("-")[0]) for each in self._written()})
        changed = [f"inputs, such as {old[file][0]}" for file in begun if old[file : file + 1] != new[file : file + 1]]
        differing = changed[:1] + [key for key in sorted({*run, *found} - {"inputs"}) if run.get(key) != found.get(key)]
        if differing:
            raise OtherRun(
                f"{self.folder} was begun with different {' and '.join(differing)} (see {path.name}); repeat that "
                "command to resume it, name another output, or start over with --force."
            )
        if found != run:  # inputs without a part, which may have been mended or added
            self._replace(path, lambda partial: _write_json(partial, run))

    def discard(self) -> None:
        """Delete the parts of earlier runs, and only those; nothing is deleted of a folder of something else."""
        if self.is_begun():
            for path in (*self.folder.glob(_PARTIAL), *self._written(), self.folder / _RECORD):
                path.unlink()

    def is_begun(self) -> bool:
        return (self.folder / _RECORD).exists()

    def has(self, file: int, chunk: int) -> bool:
        return self._path(file, chunk).exists()

    def write(self, file: int, chunk: int, write: Callable[[Path], None]) -> None:
        """Have `write` write a part; it appears under its name when it is on the disk."""
        self._replace(self._path(file, chunk), write)

    def tidy(self) -> None:
        """Delete what killed runs have left; no other process may be writing."""
        for path in self.folder.glob(_PARTIAL):
            path.unlink()

    def join(self, path: Path) -> None:
        self._replace(path, lambda partial: self._format.join(partial, self._written()))
        # In one step, so that no later run takes what is left here for its own.
        shutil.rmtree(self.folder.rename(self.folder.with_name(f".{self.folder.name}.{uuid.uuid4().hex}")))

    def _written(self) -> Sequence[Path]:
        return sorted(self.folder.glob(f"{'[0-9]' * 6}-{'[0-9]' * 8}.*"))

    def _path(self, file: int, chunk: int) -> Path:
        return self.folder / f"{file:06d}-{chunk:08d}{self._format.ending}"

    def _replace(self, path: Path, write: Callable[[Path], None]) -> None:
        partial = self.folder / f".{uuid.uuid4().hex}.{path.name}"  # two processes may write the same part
        try:
            write(partial)
            flush(partial)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)  # a full disk has no room for what is of no use
        flush(path.parent)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1))  # in ASCII: a file's name may be no Unicode
