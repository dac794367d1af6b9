"""The command line of the exporter: `convert`, `quantize`, `fuse`, `inspect`, `train` and `score`."""

import importlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import click

EXIT_BAD_CHECKPOINT = 2  # click's own exit code for bad usage
EXIT_FAILED = 1
IMPORTER_NAMES = ("native", "marian", "m2m100", "notebook")
PRECISIONS = ("float32", "float16", "int8")


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
@click.option("--from", "kind", type=click.Choice(IMPORTER_NAMES), help="Kind of checkpoint; detected by default.")
@click.option("--name", callback=_usable_name, help="Name of the model; by default the checkpoint's own.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="float16 is for CUDA, int8 for the CPU.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    help="For int8: lines of source<TAB>reference.  [default: CHECKPOINT/sentences.tsv]",
)
@click.option("--source-language", default="", help="Source language, for checkpoints that don't name it, e.g. en.")
@click.option("--target-language", default="", help="Target language, for checkpoints that don't name it, e.g. hi.")
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
    calibration: Path | None,
    **said: Any,
) -> None:
    """Export CHECKPOINT to ONNX, verify it, and write the bundle to --output, e.g. build/float32/en-de/1.

    Exit codes: 0 written, 1 the graphs failed their checks, 2 the checkpoint or --output can't be used.
    """
    warnings.filterwarnings("ignore", module=r"(torch|onnx|onnxscript)(\..*)?")
    from export.bundle_writer import check_destination
    from export.convert import convert as run
    from export.graphs.checks import GraphError
    from export.importers.imported import CheckpointError
    from export.importers.options import ImportOptions
    from export.quantization.sentences import CalibrationError, read_pairs
    from export.quantize import quantize as run_quantize
    from export.verify import VerificationError
    from service.bundle.errors import BundleError

    options = ImportOptions(**said)
    try:
        if precision == "int8":
            lines = calibration or checkpoint / "sentences.tsv"
            check_destination(output)
            read_pairs(lines)
            with tempfile.TemporaryDirectory() as folder:
                run(checkpoint, Path(folder) / "float32", kind, name, say=_say, options=options)
                run_quantize(Path(folder) / "float32", output, lines, say=_say)
        else:
            run(checkpoint, output, kind, name, precision, _say, options)
    except (CheckpointError, BundleError, CalibrationError) as error:
        _fail(str(error), EXIT_BAD_CHECKPOINT)
    except (GraphError, VerificationError) as error:
        _fail(f"{checkpoint} failed verification, nothing was written: {error}", EXIT_FAILED)
    except OSError as error:
        _fail(f"{output} can't be written: {error}.", EXIT_FAILED)


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder to write the bundle to.")
@click.option(
    "--calibration",
    required=True,
    type=click.Path(path_type=Path),
    help="Lines of source<TAB>reference; 200 are plenty.",
)
@click.option(
    "--name",
    callback=_usable_name,
    help="Name of the model; by default BUNDLE's, though one folder can't serve both then.",
)
def quantize(bundle: Path, output: Path, calibration: Path, name: str | None) -> None:
    """Quantize the float32 bundle BUNDLE to int8, for the CPU, and report the loss in quality.

    Exit codes: 0 written, 1 the graphs failed their checks, 2 BUNDLE, --calibration or --output can't be used.
    """
    from export.graphs.checks import GraphError
    from export.quantization.sentences import CalibrationError
    from export.quantize import quantize as run
    from service.bundle.errors import BundleError

    try:
        run(bundle, output, calibration, name, _say)
    except (BundleError, CalibrationError) as error:
        _fail(str(error), EXIT_BAD_CHECKPOINT)
    except GraphError as error:
        _fail(f"{bundle} failed the checks as int8, nothing was written: {error}", EXIT_FAILED)
    except OSError as error:
        _fail(f"{output} can't be written: {error}.", EXIT_FAILED)


@main.command()
@click.argument("bundle", type=click.Path(path_type=Path))
def fuse(bundle: Path) -> None:
    """Add fused graphs to the int8 bundle BUNDLE, which `quantize` writes as well; its other files stay.

    Exit codes: 0 written, 1 the graphs can't be fused, 2 BUNDLE can't be used.
    """
    from export.fusing.bundle import fuse as run
    from export.fusing.plain_graph import FusingError
    from export.graphs.checks import GraphError
    from service.bundle.errors import BundleError

    try:
        run(bundle, _say)
    except BundleError as error:
        _fail(str(error), EXIT_BAD_CHECKPOINT)
    except (FusingError, GraphError) as error:
        _fail(f"{bundle} can't be fused, nothing was written: {error}", EXIT_FAILED)
    except OSError as error:
        _fail(f"{bundle} can't be written: {error}.", EXIT_FAILED)


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


def _say(line: str) -> None:
    click.echo(line, err=True)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"export: {message}", err=True)
    sys.exit(code)
