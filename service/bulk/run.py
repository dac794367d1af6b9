"""One run: reads tables in chunks, translates several at a time, and writes a part for each."""

import asyncio
import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

from service.bulk.formats import format_of
from service.bulk.parts import Parts
from service.bulk.pipeline import RowResult
from service.bulk.shards import Shard
from service.bulk.table import Answered, Rows, TableError, TableFormat, check_columns, new_columns
from service.bundle.fields import is_unicode
from service.domain.translation import TranslationRequest

ROWS_PER_PART = 5000
_COMPARED_BYTES = 65536  # of each end of an input: reading all of it would take as long as a run does
_UNREADABLE = (TableError, OSError, EOFError, ValueError, zlib.error)  # of gzip and pyarrow, too
_FORMULAS = (*"=+-@\t\r\n", *"＝＋－＠")  # how one begins; spreadsheets skip white space, and read wide signs
_PARTS_IN_FLIGHT = 3  # so that the next one's rows wait in the engine while one ends


@dataclass(frozen=True, slots=True)
class Job:
    """The task: to translate a column of text into the column `translation_column`.

    Columns of languages take precedence over `source` and `target`; with neither, the source is detected.
    """

    text_column: str
    translation_column: str
    source: str
    target: str
    source_column: str
    target_column: str
    request: TranslationRequest
    escapes_formulas: bool = False  # see `without_formula`

    def columns_read(self) -> list[str]:
        return [name for name in (self.text_column, self.source_column, self.target_column) if name]


@dataclass(frozen=True, slots=True)
class Work:
    """The tables to translate, by name, where their parts go, and which of them are this process's."""

    inputs: Mapping[str, Path]
    parts: Parts
    form: TableFormat  # of the parts
    job: Job
    shard: Shard
    rows_per_part: int

    def record(self, models: Mapping[str, str]) -> dict[str, Any]:
        """Return what every part depends on, as JSON; a run with something else can't continue this one."""
        job = {field.name: getattr(self.job, field.name) for field in fields(self.job)}
        return {
            "inputs": {name: _fingerprint(path) for name, path in self.inputs.items()},
            "format": self.form.name,
            "rows per part": self.rows_per_part,
            "options": {name: value if isinstance(value, str) else repr(value) for name, value in job.items()},
            "models": dict(models),
        }

    def num_rows(self) -> int | None:
        """Estimate the rows of this process's shard; `None` if only reading everything would tell."""
        num_files = len(self.inputs)
        own = [path for file, path in enumerate(self.inputs.values()) if self.shard.has_file(file, num_files)]
        counts = []
        for path in own:
            with _naming(str(path), *_UNREADABLE):
                counts.append(format_of(path).count(path))
        if None in counts:
            return None
        return sum(filter(None, counts)) // (1 if num_files >= self.shard.count else self.shard.count)


def _fingerprint(path: Path) -> str:
    """Return a file's size and a checksum of its beginning and end; times of change differ from node to node."""
    with path.open("rb") as file:
        begin = file.read(_COMPARED_BYTES)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _COMPARED_BYTES, 0))
        return f"{size} bytes, {hashlib.sha256(begin + file.read()).hexdigest()}"


@dataclass(slots=True)
class Totals:
    """Rows so far: all, those of earlier runs, and those with an error."""

    num_rows: int = 0
    num_kept: int = 0
    num_failed: int = 0


class JobRefused(Exception):
    """The languages or options can't be those of any row; a message of one line."""


class Translates(Protocol):
    """The part of `Pipeline` that runs need."""

    def versions(self) -> dict[str, str]: ...

    async def translate(
        self, texts: Sequence[str], source: str, target: str, request: TranslationRequest | None = None
    ) -> list[RowResult]: ...


async def run(pipeline: Translates, work: Work, progressed: Callable[[Totals], None]) -> Totals:
    """Translate the chunks of this shard that have no part yet."""
    job, parts = work.job, work.parts
    if not job.target_column and (
        error := (await pipeline.translate(["a"], job.source, job.target, job.request))[0].error
    ):
        raise JobRefused(error)
    parts.begin(work.record(pipeline.versions()))
    totals = Totals()
    names = list(work.inputs)
    running: set[asyncio.Task[None]] = set()

    async def translate(file: int, chunk: int, rows: Rows) -> None:
        with _naming(names[file], TableError):
            answered = await answer(pipeline, rows, job)
        with _naming(names[file], TableError, ValueError, NotImplementedError):  # values that the format does not have
            await asyncio.to_thread(parts.write, file, chunk, lambda path: work.form.write(path, answered))
        totals.num_rows += len(rows)
        totals.num_failed += sum(1 for each in answered.results if each.error)
        progressed(totals)

    chunks = _chunks(work)
    try:
        while (read := await asyncio.to_thread(next, chunks, None)) is not None:
            file, chunk, rows = read
            if parts.has(file, chunk):
                totals.num_rows += len(rows)
                totals.num_kept += len(rows)
                progressed(totals)
                continue
            running.add(asyncio.create_task(translate(file, chunk, rows)))
            if len(running) == _PARTS_IN_FLIGHT:
                running = await _one_done(running)
        while running:
            running = await _one_done(running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return totals


async def _one_done(running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


def _chunks(work: Work) -> Iterator[tuple[int, int, Rows]]:
    num_files = len(work.inputs)
    for file, (name, path) in enumerate(work.inputs.items()):
        if work.shard.has_file(file, num_files):
            with _naming(name, *_UNREADABLE):
                for chunk, rows in enumerate(format_of(path).read(path, work.rows_per_part)):
                    if chunk == 0:  # records of JSON need not have it each
                        check_columns(rows, work.job.columns_read(), ())
                    if work.shard.has(file, chunk, num_files):
                        yield file, chunk, rows


@contextlib.contextmanager
def _naming(name: str, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise TableError(f"{name}: {next(iter(str(error).splitlines()), type(error).__name__)}") from error


async def answer(pipeline: Translates, rows: Rows, job: Job) -> Answered:
    check_columns(rows, (), new_columns(job.translation_column))
    results = await _results(pipeline, rows, job)
    if job.escapes_formulas:
        results = [replace(each, text=without_formula(each.text)) for each in results]
    return Answered(rows, results, job.translation_column)


def without_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: with an apostrophe before what may begin one."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


async def _results(pipeline: Translates, rows: Rows, job: Job) -> list[RowResult]:
    """Return what became of each row; rows of the same languages are translated together."""
    texts = rows.column(job.text_column)
    sources = rows.column(job.source_column) if job.source_column else [job.source] * len(rows)
    targets = rows.column(job.target_column) if job.target_column else [job.target] * len(rows)
    results: dict[int, RowResult] = {}
    pairs: dict[tuple[str, str], list[int]] = {}
    for index, (text, source, target) in enumerate(zip(texts, sources, targets, strict=True)):
        problem = rows.problem(index) or _problem(job, text, source or job.source, target or job.target)
        if problem:
            results[index] = RowResult("", "", error=problem)
        else:
            pairs.setdefault((source or job.source, target or job.target), []).append(index)
    answers = await asyncio.gather(
        *(
            pipeline.translate([texts[index] for index in indices], source, target, job.request)
            for (source, target), indices in pairs.items()
        )
    )
    for indices, of_pair in zip(pairs.values(), answers, strict=True):
        results.update(zip(indices, of_pair, strict=True))
    return [results[index] for index in range(len(rows))]


def _problem(job: Job, text: object, source: object, target: object) -> str:
    if not isinstance(text, str):
        return f"column {job.text_column!r} {_instead(text, 'text')}"
    if not is_unicode(text):
        return f"column {job.text_column!r} has half of a surrogate pair; write both halves"
    if not isinstance(source, str):
        return f"column {job.source_column!r} {_instead(source, 'a language code')}"
    if not isinstance(target, str) or not target:
        return f"column {job.target_column!r} has no language code, and there is no --to"
    return ""


def _instead(value: object, wanted: str) -> str:
    return "is empty (null)" if value is None else f"holds {type(value).__name__}, not {wanted}"
