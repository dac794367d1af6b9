"""`dragoman bulk`: translates files of any size in resumable parts, with models in this process or a server."""

import contextlib
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from dragoman_client import ClientError, RequestFields
from service.bundle.errors import BundleError
from service.cli.errors import CommandError, ExitCode
from service.cli.options import Connection, optional_connection_options, timeout_option
from service.cli.request_options import request_options
from service.domain.errors import counted

if TYPE_CHECKING:
    from service.bulk.run import Totals, Translates, Work
    from service.domain.translation import TranslationRequest

_PATH = click.Path(path_type=Path)


@click.command(short_help="Translate tables and files of any size.")
@click.argument("source_path", metavar="IN", type=click.Path(path_type=Path, exists=True))
@click.argument("output", metavar="OUT", type=_PATH)
@click.option("--to", "target", default="", metavar="CODE", help="Language to translate into, such as de.")
@click.option(
    "--from",
    "source",
    default="",
    metavar="CODE",
    help="Language of the texts. Default: detected for each text.",
)
@click.option("--column", default="text", show_default=True, metavar="NAME", help="Column to translate.")
@click.option(
    "--target-column", default="translation", show_default=True, metavar="NAME", help="Column for the translations."
)
@click.option("--from-column", default="", metavar="NAME", help="Column with each row's --from.")
@click.option("--to-column", default="", metavar="NAME", help="Column with each row's --to.")
@click.option(
    "--output-format",
    type=click.Choice(("text", "jsonl", "csv", "tsv", "parquet")),
    help="Format of the parts in a folder OUT. Default: that of IN.",
)
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="In CSV and TSV, put an apostrophe before translations that begin like formulas, with = + - or @.",
)
@click.option(
    "--shard",
    "shard_text",
    metavar="I/N",
    help="Do only part I of N, from 0; /N takes I from JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID.",
)
@click.option(
    "--rows-per-part",
    type=click.IntRange(1, 1_000_000),
    help="Rows per part, the most that a killed run repeats.  [5000]",
)
@click.option("--force", is_flag=True, help="Start over; delete what an earlier run left in OUT.")
@click.option("--models", type=_PATH, default=Path("models"), show_default=True, help="A bundle, or a repository.")
@click.option("--num-threads", type=click.IntRange(0), default=0, help="Threads; 0: as many as there are CPUs.")
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cpu", show_default=True)
@click.option("--glossaries", type=_PATH, help="A folder of glossaries, as for dragoman serve.")
@request_options
@timeout_option("With --server: maximum time for one call, of up to 32 rows.")
@optional_connection_options
def bulk(
    *,
    source_path: Path,
    output: Path,
    target: str,
    source: str,
    column: str,
    target_column: str,
    from_column: str,
    to_column: str,
    output_format: str | None,
    escape_formulas: bool,
    shard_text: str | None,
    rows_per_part: int | None,
    force: bool,
    request_fields: RequestFields,
    timeout_seconds: float,
    connection: Connection | None,
    **own_models: Any,
) -> None:
    """Translate a column of IN, a file or a folder of files, with models in this process or, with --server, a server's.

    Each row gets columns for its translation, finish_reason, flags, source_language and error: a row that can't be
    translated fails alone. OUT is a file of a known ending, or else a folder of parts. The same command again continues
    where a run was stopped or killed.

    Shards share the folder of parts, which is OUT.parts for a file OUT; without --shard, what is missing is done, and
    OUT is written.
    """
    # Imported here: other commands need no engine, and should start quickly.
    from service.bulk.formats import FORMATS, format_of, has_known_ending
    from service.bulk.parts import Parts
    from service.bulk.pipeline import Pipeline
    from service.bulk.run import ROWS_PER_PART, Job, Work
    from service.bulk.shards import Shard, parse_shard
    from service.cli.bulk_server import served_models
    from service.process.disk import held

    if connection:
        _refuse(own_models)
    if not target and not to_column:
        raise click.UsageError("give --to, or a column with --to-column.")
    try:
        shard = parse_shard(shard_text, os.environ) if shard_text else Shard()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--shard'") from None
    if force and shard.count > 1:
        raise click.UsageError(
            "--force would delete the parts of other shards; delete the folder before any shard starts."
        )
    is_file = bool(output.suffix) and not output.is_dir() and (has_known_ending(output) or not source_path.is_dir())
    job = Job(column, target_column, source, target, from_column, to_column, _request(request_fields), escape_formulas)
    with _errors(output):
        inputs = _inputs(source_path, output)
        first = next(iter(inputs.values()))
        form = format_of(output) if is_file else FORMATS[output_format] if output_format else format_of(first)
        if escape_formulas and form.name not in ("csv", "tsv"):
            raise click.UsageError(f"--escape-formulas is for csv and tsv; the output is {form.name}.")
        parts = Parts(_parts_folder(output) if is_file else output, form)
        is_whole = is_file and shard.count == 1
        work = Work(inputs, parts, form, job, shard, rows_per_part or ROWS_PER_PART)
        with held(parts.folder, alone=shard.count == 1):
            if is_file and output.exists() and not force and not parts.is_begun():  # a run begun with --force goes on
                raise CommandError(f"{output} exists; name another file, or overwrite it with --force.", ExitCode.USAGE)
            if force:
                parts.discard()
            served = served_models(connection, timeout_seconds, request_fields) if connection else None
            totals = _run(work, served or Pipeline(**own_models))
            if shard.count == 1:
                parts.tidy()
            if is_whole:
                parts.join(output)
    kept = f", {totals.num_kept} of them from earlier runs" if totals.num_kept else ""
    failed = f"; {counted(totals.num_failed, 'row')} failed in this run" if totals.num_failed else ""
    click.echo(f"{output if is_whole else parts.folder}: {counted(totals.num_rows, 'row')}{kept}{failed}.", err=True)


def _refuse(own_models: Iterable[str]) -> None:
    context = click.get_current_context()
    for name in own_models:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} is for models in this process; leave out either it or --server.")


@contextlib.contextmanager
def _errors(output: Path) -> Iterator[None]:
    from service.bulk.parts import OtherRun
    from service.bulk.run import JobRefused
    from service.bulk.table import TableError

    try:
        yield
    except JobRefused as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    except (OtherRun, TableError) as error:
        raise CommandError(str(error), ExitCode.DATA) from None
    except BundleError as error:
        error.add_note("This command translates with models in this process (--models), or with a server (--server).")
        raise
    except (ClientError, KeyboardInterrupt) as error:
        error.add_note("finished rows are kept; the same command resumes.")
        raise
    except BlockingIOError:
        raise CommandError(f"another process is writing {output}; wait until it ends.", ExitCode.TRY_LATER) from None
    except OSError as error:
        told = f"{error.filename or output}: {error.strerror or error}"
        raise CommandError(f"{told}; once that is fixed, the same command resumes.", ExitCode.IO_ERROR) from error


def _inputs(path: Path, output: Path) -> dict[str, Path]:
    """Return the tables to read, by their names; report those of a folder that are left out."""
    from service.bulk.formats import format_of, has_known_ending
    from service.bulk.table import TableError

    if output.exists() and output.samefile(path):
        raise TableError(f"{output} is the input; name another output.")
    if not path.is_dir():
        if not path.is_file():
            raise TableError(f"{path} is not a regular file, so a run could not resume; copy it to a file first.")
        format_of(path)
        return {path.name: path}
    root = path.resolve()
    written = output.resolve(), _parts_folder(output).resolve()
    own = [path / each.relative_to(root) for each in written if each.is_relative_to(root)]
    inputs, others = {}, []
    for each in sorted(path.rglob("*")):
        name = each.relative_to(path)
        if any(part.startswith(("_", ".")) for part in name.parts) or any(each.is_relative_to(it) for it in own):
            continue  # hidden, or written by an earlier run
        if each.is_file() and has_known_ending(each):
            inputs[str(name)] = each
        elif each.is_symlink() or not each.is_dir():
            others.append(str(name))
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        click.echo(f"dragoman: skipped, as their endings are not supported: {', '.join(others[:3])}{more}", err=True)
    if not inputs:
        raise TableError(f"{path} has no file with a supported ending, such as .jsonl, .csv or .txt.")
    return inputs


def _parts_folder(output: Path) -> Path:
    return output.with_name(f"{output.name}.parts")


def _request(fields: RequestFields) -> "TranslationRequest":
    from dragoman_client.messages import request_to_pb
    from service.domain.errors import InvalidRequest
    from service.faces.dragoman.messages import request_from_pb

    try:
        request = request_from_pb(cast(Any, request_to_pb((), "", "", fields)), deadline_seconds=math.inf)
    except (InvalidRequest, ValueError) as error:
        raise click.UsageError(str(error)) from None
    return replace(request, deadline_seconds=None)


def _run(work: "Work", models: "AbstractAsyncContextManager[Translates]") -> "Totals":
    from service.bulk.run import run
    from service.engine.runtime.session import DeviceUnavailable
    from service.process import event_loop

    async def translate() -> "Totals":
        async with models as translating:
            with _progress(work) as progressed:
                return await run(translating, work, progressed)

    logging.basicConfig(level=logging.WARNING, format="dragoman: %(message)s")
    try:
        return event_loop.run(translate())
    except DeviceUnavailable as error:
        raise CommandError(str(error), ExitCode.CONFIG) from error


@contextlib.contextmanager
def _progress(work: "Work") -> "Iterator[Callable[[Totals], None]]":
    """Yield a function that reports the rows so far: a bar on a terminal, else a line from time to time."""
    from tqdm import tqdm

    is_terminal = sys.stderr.isatty()
    interval = 0.2 if is_terminal else 30.0
    line = None if is_terminal else "{n_fmt} of {total_fmt} rows, {rate_fmt}, {elapsed} so far, {remaining} left\n"
    total = work.num_rows()
    with tqdm(total=total, unit=" rows", file=sys.stderr, mininterval=interval, delay=interval, bar_format=line) as bar:

        def progressed(totals: "Totals") -> None:
            bar.initial = totals.num_kept  # which took no time
            bar.update(totals.num_rows - bar.n)

        yield progressed
