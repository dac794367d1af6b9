"""`dragoman translate`: texts from the command line, a file or a pipe; translations in the same order."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import click
from tqdm import tqdm

from service.cli import exit_codes
from service.cli.command_error import CommandError
from service.cli.lines import Line, count_lines, read_lines
from service.cli.options import server_option
from service.cli.pipeline import map_chunks
from service.cli.streams import arguments, located, open_input, write
from service.client import Client, ClientError, ServedModel
from service.translation import Priority, RequestedOptions, Translation

_FILE = click.Path(path_type=Path, dir_okay=False)
_MAX_DIRECTIONS = 20  # of so many an error tells


@click.command()
@click.argument("texts", nargs=-1)
@click.option(
    "--to",
    "target",
    envvar="DRAGOMAN_TRANSLATE_TO",
    required=True,
    metavar="CODE",
    help="Language to translate into, such as de.",
)
@click.option(
    "--from",
    "source",
    envvar="DRAGOMAN_TRANSLATE_FROM",
    metavar="CODE",
    help="Language of the texts. Default: the only one that fits; of several, each text's own is detected.",
)
@click.option("--model", default="", metavar="NAME", help="Model to use. Default: the server's first that fits.")
@click.option("--model-version", default="", metavar="V", help="Version of --model to use. Default: the highest.")
@click.option("-i", "--file", "input_file", type=_FILE, metavar="FILE", help="Read lines from this file.")
@click.option("-o", "--output", "output_file", type=_FILE, metavar="FILE", help="Write to this file.")
@click.option("--beam-size", type=int, help="Hypotheses kept alive: 1 is fastest. Default: the model's.")
@click.option("--length-penalty", type=float, help="Above 0 favours longer translations. Default: the model's.")
@click.option("--num-hypotheses", type=int, help="Print this many candidates per text, with line number and score.")
@click.option("--max-output-tokens", type=int, help="Most tokens per translation. Default: the model's limit.")
@click.option("--temperature", type=float, help="Above 0: draw tokens by chance instead of searching. Default: 0.")
@click.option("--top-k", type=int, help="With --temperature: draw from so many tokens. Default: 64.")
@click.option("--top-p", type=float, help="With --temperature: draw from this share of probability. Default: 1.")
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="With --temperature: the same seed draws the same.")
@click.option(
    "--priority",
    type=click.Choice([priority.value for priority in Priority]),
    default=Priority.NORMAL.value,
    show_default=True,
    help="Whose turn it is when the server is busy.",
)
@click.option("--timeout-seconds", type=click.FloatRange(0.001, 86_400), default=60.0, show_default=True)
@server_option
def translate(
    *,
    texts: tuple[str, ...],
    target: str,
    source: str | None,
    model: str,
    model_version: str,
    input_file: Path | None,
    output_file: Path | None,
    beam_size: int | None,
    length_penalty: float | None,
    num_hypotheses: int | None,
    max_output_tokens: int | None,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    priority: str,
    timeout_seconds: float,
    server: str,
) -> None:
    """Translate TEXTS, or without any the lines of standard input or of a file.

    Every line in gives one line out, in order; empty lines stay empty. With --num-hypotheses, each line out is the
    number of the line in, a score and a candidate, separated by tabs.
    """
    if texts and input_file:
        raise click.UsageError("give either texts or --file, not both.")
    if model_version and not model:
        raise click.UsageError("--model-version needs --model.")
    ranked = num_hypotheses is not None
    options = RequestedOptions(
        beam_size, length_penalty, num_hypotheses, max_output_tokens, ranked or None, temperature, top_k, top_p, seed
    )
    with contextlib.ExitStack() as stack:
        stream = None if texts else stack.enter_context(open_input(input_file))
        client = stack.enter_context(Client(server, timeout_seconds))
        source = source or _only_source(client, target, model, model_version)
        output = stack.enter_context(_open_output(output_file, input_file))
        lines = read_lines(stream) if stream else arguments(texts)
        noun = "line" if stream else "text"
        progress = stack.enter_context(_progress(stream, output_file))

        def translate_chunk(chunk: list[Line]) -> list[Translation]:
            try:
                texts_of_chunk = [line.text for line in chunk]
                return client.translate(
                    texts_of_chunk,
                    source,
                    target,
                    model=model,
                    model_version=model_version,
                    options=options,
                    priority=Priority(priority),
                )
            except ClientError as error:
                raise located(error, chunk, noun) from None

        for chunk in map_chunks(lines, translate_chunk):
            write(output, "".join(_rendered(line, translation, ranked) for line, translation in chunk))
            progress.update(len(chunk))


def _rendered(line: Line, translation: Translation, ranked: bool) -> str:
    if not ranked:
        return translation.text + line.ending
    return "".join(
        f"{line.number}\t{'' if hypothesis.score is None else format(hypothesis.score, '.4f')}\t{hypothesis.text}\n"
        for hypothesis in translation.hypotheses
    )


def _candidates(client: Client, model: str, version: str) -> list[ServedModel]:
    """The served models that may answer a call that names these, or leaves them empty."""
    served: dict[str, dict[str, ServedModel]] = {}
    for each in client.models():
        served.setdefault(each.name, {})[each.version] = each
    if model and model not in served:
        names = ", ".join(served)
        raise CommandError(f"model {model!r} is not served at {client.server}; served: {names}.", exit_codes.USAGE)
    if version and version not in served[model]:
        versions = ", ".join(filter(None, served[model])) or "none"
        raise CommandError(
            f"version {version!r} of model {model!r} is not served at {client.server}; served: {versions}.",
            exit_codes.USAGE,
        )
    if version:
        return [served[model][version]]
    return [next(iter(versions.values())) for name, versions in served.items() if model in ("", name)]  # the highest


def _only_source(client: Client, target: str, model: str, version: str) -> str:
    """The one language that can be translated into `target`; empty if there are several: the server detects."""
    from service.text.languages import ServedLanguages  # takes 50 ms, also for who gives --from

    pairs = {pair for served in _candidates(client, model, version) for pair in served.pairs()}
    targets = {found.code for found in ServedLanguages(into for _, into in pairs).find(target)}
    sources = {source for source, into in pairs if into in targets}
    if sources:
        return sources.pop() if len(sources) == 1 else ""
    directions = sorted(f"{source} to {into}" for source, into in pairs)
    more = f" and {len(directions) - _MAX_DIRECTIONS} more" if len(directions) > _MAX_DIRECTIONS else ""
    shown = ", ".join(directions[:_MAX_DIRECTIONS]) + more
    raise CommandError(f"nothing here translates into {target!r}; served: {shown}.", exit_codes.USAGE)


@contextlib.contextmanager
def _open_output(path: Path | None, input_path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    if input_path is not None and path.exists() and path.samefile(input_path):
        raise CommandError(f"{path} is the input; write to another file.", exit_codes.USAGE)
    try:
        stream = path.open("wb")
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror}.", exit_codes.CANT_CREATE) from error
    with stream:
        yield stream


def _progress(stream: BinaryIO | None, output_file: Path | None) -> "tqdm[NoReturn]":
    """A bar on standard error, if somebody watches it and neither types the input nor reads the output there."""
    shown = stream is not None and sys.stderr.isatty() and not stream.isatty()
    shown = shown and (output_file is not None or not sys.stdout.isatty())
    total = count_lines(stream) if shown and stream is not None and stream.seekable() else None
    return tqdm(total=total, unit=" lines", disable=not shown, file=sys.stderr, mininterval=0.2)
