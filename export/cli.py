"""The command line of the exporter: `convert`, `doctor`, `inspect`, `shortlist`, `train` and `score`."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from export.command_group import CommandGroup
from export.command_options import found_here, parsed_settings, usable_name
from export.importers.registry import NAMES, by_suffix
from export.training.command import score, train
from service.domain.errors import counted

EXIT_BAD_CHECKPOINT = 2  # click's own exit code for bad usage
EXIT_FAILED = 1
PRECISIONS = ("float32", "float16", "int8")
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Turn trained checkpoints into bundles that dragoman serves."""


main.add_command(train)
main.add_command(score)


@main.command(short_help="Convert CHECKPOINT to a bundle, and verify it.")
@click.argument("checkpoint")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder to write the bundle to.")
@click.option("--force", is_flag=True, help="Replace the bundle that is there; otherwise it is kept.")
@click.option("--from", "kind", type=click.Choice(NAMES), help="Kind of checkpoint; detected by default.")
@click.option("--all", "is_all", is_flag=True, help="Convert all checkpoints in the folder CHECKPOINT.")
@click.option("--name", callback=usable_name, help="Name of the model; by default NAME of --output ROOT/NAME/1.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="float16 is for CUDA, int8 for the CPU.",
)
@click.option(
    "--check",
    type=click.Path(path_type=Path),
    help="For int8: a text file whose lines are compared, too; for models without English, instead of the "
    "golden texts.",
)
@click.option(
    *("--set", "settings"),
    metavar="NAME=VALUE",
    multiple=True,
    callback=parsed_settings,
    help="Override a setting of transformers' generate, as JSON; null removes it. May be repeated.",
)
@click.option("--base", help="For a PEFT adapter: its base model, into which it is merged.")
@click.option("--source-language", default="", help="Source language, for checkpoints that don't name it, e.g. en.")
@click.option("--target-language", default="", help="Target language, for checkpoints that don't name it, e.g. hi.")
@click.option(
    "--source-prefix", default="", help="For T5: text before each source, such as 'translate English to Hindi: '."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="For pytorch: JSON file with the settings that the weights don't show.",
)
@click.option(
    "--like",
    default="",
    metavar="FILE.py:FUNCTION",
    help="For pytorch: the author's code, whose function returns the model. It is run, and the model compared with it.",
)
@click.option(
    "--names",
    type=click.Path(path_type=Path),
    help="For pytorch: TOML file that maps the names of the weights, if they match no known layout.",
)
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="For pytorch and ctranslate2: the source tokenizer, .model or, for pytorch, .json or a word list.",
)
@click.option(
    "--target-tokenizer",
    type=click.Path(path_type=Path),
    help="For pytorch and ctranslate2: the target tokenizer.  [default: --tokenizer]",
)
@click.option(
    "--no-prose",
    "is_prose",
    flag_value=False,
    default=True,
    help="For code, formulas and the like: servers don't split or search texts, nor correct translations.",
)
@click.option(
    "--positions",
    type=click.Choice(["marian"]),
    help="For transformers' Marian folders: compute positions as Marian does; transformers differs.",
)
def convert(
    checkpoint: str,
    output: Path,
    kind: str | None,
    name: str | None,
    precision: str,
    check: Path | None,
    settings: dict[str, Any],
    base: str | None,
    *,
    force: bool,
    is_all: bool,
    is_prose: bool,
    **said: Any,
) -> None:
    """Export CHECKPOINT to ONNX, verify it, and write the bundle to --output, e.g. build/float32/en-de/1.

    CHECKPOINT is a folder, for some kinds a file, or a model's name at the Hugging Face hub, such as
    Helsinki-NLP/opus-mt-en-de, OWNER/NAME@REVISION or its address. It is downloaded then, to the hub's cache.

    With --all, the folder F or the file F.argosmodel of CHECKPOINT becomes the model F in F/1 of --output, a repository
    that `dragoman serve` takes; what can't be converted is named, and the others are written.

    Exit codes: 0 written, 1 the graphs failed their checks, 2 the checkpoint or --output can't be used; with --all, of
    the first that failed.
    """
    origin, name_at_hub = found_here(checkpoint, _say)
    base_folder = None if base is None else found_here(base, _say)[0]
    from export.changed_checkpoint import Changes
    from export.convert import convert as run
    from export.graphs.checks import GraphError
    from export.importers.imported import CheckpointError
    from export.importers.options import ImportOptions
    from export.place import model_name
    from export.verify import VerificationError
    from service.bundle.errors import BundleError

    options, changes = ImportOptions(**said), Changes(settings, base_folder)

    def write(source: Path, destination: Path) -> tuple[int, str]:
        try:
            named = name or model_name(destination) or name_at_hub
            flags = {"force": force, "is_prose": is_prose}
            run(source, destination, kind, named, precision, _say, options, check, changes, **flags)
        except (CheckpointError, BundleError) as error:
            return EXIT_BAD_CHECKPOINT, str(error)
        except (GraphError, VerificationError) as error:
            return EXIT_FAILED, f"{source} failed verification, nothing was written: {error}"
        except OSError as error:
            if error.filename and Path(error.filename).is_relative_to(source):
                return EXIT_BAD_CHECKPOINT, f"{source} can't be read ({error}); change its permissions."
            return EXIT_FAILED, f"{destination} can't be written ({error}); choose another --output."
        return 0, ""

    if not is_all:
        code, problem = write(origin, output)
        if code:
            _fail(problem, code)
        return
    found = sorted(path for path in origin.glob("*") if path.is_dir() or by_suffix(path) is not None)
    if not found or name is not None:
        raise click.UsageError(
            f"--all: {checkpoint} has no checkpoints" if name is None else "--name is for one checkpoint"
        )
    codes = list[int]()
    for number, source in enumerate(found, 1):
        _say(f"{source.name} ({number} of {len(found)})")
        code, problem = write(source, output / (source.name if source.is_dir() else source.stem) / "1")
        codes.append(code)
        if code:
            click.echo(f"export: {problem}", err=True)
    _say(f"converted {codes.count(0)} of {counted(len(found), 'checkpoint')}")
    sys.exit(next(filter(None, codes), 0))


_ONLY_TO_CONVERT = ("output", "force", "is_all", "name", "precision", "check", "is_prose")


@main.command(
    short_help="Say whether CHECKPOINT can be converted.",
    params=[each for each in convert.params if each.name not in _ONLY_TO_CONVERT],
)
def doctor(checkpoint: str, kind: str | None, settings: dict[str, Any], base: str | None, **said: Any) -> None:
    """Describe CHECKPOINT: what it is, whether `convert` would take it and what it becomes, or what is missing.

    Exit codes: 0 it would be converted, 1 it would not, 2 it can't be downloaded.
    """
    origin, name = found_here(checkpoint, _say)
    base_folder = None if base is None else found_here(base, _say)[0]
    from export.changed_checkpoint import Changes
    from export.doctor import diagnose
    from export.importers.options import ImportOptions

    diagnosis = diagnose(origin, kind, ImportOptions(**said), Changes(settings, base_folder), checkpoint, name)
    click.echo("\n".join(diagnosis.lines))
    if not diagnosis.is_convertible:
        sys.exit(EXIT_FAILED)


@main.command(short_help="Describe BUNDLE, and check its files.")
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


@main.command(short_help="Add a shortlist to BUNDLE, for faster decoding.")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder to write the bundle to.")
@click.option("--force", is_flag=True, help="Replace the bundle that is there; otherwise it is kept.")
@click.option("--texts", type=_FILE, help="Texts to translate, one per line; give many thousands.")
@click.option("--lexicon", type=_FILE, help="Marian's lex.s2t or lex.bin, instead of texts.")
@click.option("--first", default=50, show_default=True, help="Number of most frequent tokens that are always allowed.")
@click.option(
    "--best", default=50, show_default=True, help="Number of most frequent translations allowed per source token."
)
@click.option("--check", type=_FILE, help="Lines of source, tab and reference, to measure the cost in BLEU.")
def shortlist(
    bundle: Path,
    output: Path,
    texts: Path | None,
    lexicon: Path | None,
    first: int,
    best: int,
    check: Path | None,
    *,
    force: bool,
) -> None:
    """Write BUNDLE to --output with a shortlist: translations consist of tokens that are listed for their sources.

    Decoding gets faster if it is int8.

    It is made of what the bundle translates --texts to, or read from --lexicon.

    Exit codes: 0 written, 1 it could not be, 2 BUNDLE, a file or --output can't be used.
    """
    from export.graphs.checks import GraphError
    from export.listed_bundle import write_listed
    from service.bundle.errors import BundleError

    if (texts is None) == (lexicon is None):
        raise click.UsageError("give either --texts or --lexicon")
    try:
        write_listed(bundle, output, texts, lexicon, first, best, check, _say, force=force)
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
