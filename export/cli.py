"""The command line of the exporter: `convert`, `inspect`, `train` and `score`."""

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import click

from export.importers.registry import NAMES

EXIT_BAD_CHECKPOINT = 2  # click's own exit code for bad usage
EXIT_FAILED = 1
PRECISIONS = ("float32", "float16", "int8")
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class _LazyGroup(click.Group):
    """Imports a command on first use: torch alone takes seconds to import, which `--help` should not."""

    LAZY: ClassVar = {name: ("export.training.command", name) for name in ("train", "score")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.LAZY])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.LAZY:
            return super().get_command(ctx, cmd_name)
        module, attribute = self.LAZY[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


def _usable_name(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Check the bundle's name before the work begins, instead of in the server that loads it."""
    if name is None:
        return None
    from service.bundle.fields import MAX_NAME_BYTES, is_name

    if not is_name(name):
        raise click.BadParameter(
            f"{name[:60]!r} is not a valid name; allowed are 1 to {MAX_NAME_BYTES} printable bytes of UTF-8."
        )
    return name


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Turn trained checkpoints into bundles that dragoman serves."""


@main.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder to write the bundle to.")
@click.option("--from", "kind", type=click.Choice(NAMES), help="Kind of checkpoint; detected by default.")
@click.option("--all", "is_all", is_flag=True, help="CHECKPOINT has a folder for each; convert all of them.")
@click.option("--name", callback=_usable_name, help="Name of the model; by default the checkpoint's own.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="float16 is for CUDA, int8 for the CPU.",
)
@click.option(
    "--check", type=click.Path(path_type=Path), help="For int8: a text file, on whose lines it is compared, too."
)
@click.option("--source-language", default="", help="Source language, for checkpoints that don't name it, e.g. en.")
@click.option("--target-language", default="", help="Target language, for checkpoints that don't name it, e.g. hi.")
@click.option(
    "--source-prefix", default="", help="For T5: text before each source, such as 'translate English to Hindi: '."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="For notebook: JSON file with the settings that weights don't show.",
)
@click.option(
    "--tokenizer", type=click.Path(path_type=Path), help="For notebook: the source tokenizer, .model or .json."
)
@click.option(
    "--target-tokenizer",
    type=click.Path(path_type=Path),
    help="For notebook: the target tokenizer.  [default: --tokenizer]",
)
def convert(
    checkpoint: Path,
    output: Path,
    kind: str | None,
    name: str | None,
    precision: str,
    check: Path | None,
    *,
    is_all: bool,
    **said: Any,
) -> None:
    """Export CHECKPOINT to ONNX, verify it, and write the bundle to --output, e.g. build/float32/en-de/1.

    With --all, the folder F of CHECKPOINT becomes the bundle F/1 of --output, a repository that `dragoman serve` takes;
    what can't be converted is named, and the others are written.

    Exit codes: 0 written, 1 the graphs failed their checks, 2 the checkpoint or --output can't be used; with --all, of
    the first that failed.
    """
    warnings.filterwarnings("ignore", module=r"(torch|onnx|onnxscript)(\..*)?")
    from export.convert import convert as run
    from export.graphs.checks import GraphError
    from export.importers.imported import CheckpointError
    from export.importers.options import ImportOptions
    from export.verify import VerificationError
    from service.bundle.errors import BundleError

    options = ImportOptions(**said)

    def write(source: Path, destination: Path) -> tuple[int, str]:
        """Return the exit code, and what failed."""
        try:
            run(source, destination, kind, name, precision, _say, options, check)
        except (CheckpointError, BundleError) as error:
            return EXIT_BAD_CHECKPOINT, str(error)
        except (GraphError, VerificationError) as error:
            return EXIT_FAILED, f"{source} failed verification, nothing was written: {error}"
        except OSError as error:
            return EXIT_FAILED, f"{destination} can't be written: {error}."
        return 0, ""

    if not is_all:
        code, problem = write(checkpoint, output)
        if code:
            _fail(problem, code)
        return
    folders = sorted(path for path in checkpoint.glob("*") if path.is_dir())
    if not folders or name is not None:
        raise click.UsageError(
            f"--all: {checkpoint} has no folders" if name is None else "--name is for one checkpoint"
        )
    codes = list[int]()
    for number, folder in enumerate(folders, 1):
        _say(f"{folder.name} ({number} of {len(folders)})")
        code, problem = write(folder, output / folder.name / "1")
        codes.append(code)
        if code:
            click.echo(f"export: {problem}", err=True)
    _say(f"{codes.count(0)} of {len(folders)} checkpoints are converted")
    sys.exit(next(filter(None, codes), 0))


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
def inspect(bundle: Path, as_json: bool) -> None:
    """Describe BUNDLE: architecture, languages, precision, sizes, checksums, fidelity, licence.

    Exit codes: 0 intact, 1 files are missing or differ from their checksums, 2 BUNDLE is not a bundle.
    """
    from export.inspection import describe, lines
    from service.bundle.errors import BundleError

    try:
        document = describe(bundle)
    except BundleError as error:
        _fail(str(error), EXIT_BAD_CHECKPOINT)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else "\n".join(lines(document)))
    if document["faults"]:
        sys.exit(EXIT_FAILED)


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder to write the bundle to.")
@click.option("--texts", type=_FILE, help="Texts to translate, a line each: many thousands.")
@click.option("--lexicon", type=_FILE, help="Marian's lex.s2t or lex.bin, instead of texts.")
@click.option("--first", default=50, show_default=True, help="Most frequent tokens that are always allowed.")
@click.option("--best", default=50, show_default=True, help="Tokens that a source token is translated to.")
@click.option("--check", type=_FILE, help="Lines of source, tab and reference: what it costs in BLEU.")
def shortlist(
    bundle: Path, output: Path, texts: Path | None, lexicon: Path | None, first: int, best: int, check: Path | None
) -> None:
    """Write BUNDLE to --output with a shortlist: translations consist of tokens that are listed for their sources.

    Decoding gets faster if it is int8.

    It is made of what the bundle translates --texts to, or read from --lexicon.

    Exit codes: 0 written, 1 it could not be, 2 BUNDLE, a file or --output can't be used.
    """
    from export.graphs.checks import GraphError
    from export.shortlist_command import write_listed
    from service.bundle.errors import BundleError

    if (texts is None) == (lexicon is None):
        raise click.UsageError("give either --texts or --lexicon")
    try:
        write_listed(bundle, output, texts, lexicon, first, best, check, _say)
    except (BundleError, ValueError) as error:
        _fail(f"{bundle}: {error}", EXIT_BAD_CHECKPOINT)
    except GraphError as error:
        _fail(f"{bundle}: {error}", EXIT_FAILED)
    except OSError as error:
        _fail(f"{error.filename or output}: {error.strerror or error}.", EXIT_FAILED)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"export: {message}", err=True)
    sys.exit(code)
