"""SHA-256 of files: whether a bundle is intact, and made from the current checkpoint.

`python -m service.bundle.checksums MODELS CHECKPOINTS` fails unless all are current; `make serve` runs it first.
"""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from service.bundle.errors import CONVERT_AGAIN, BundleError
from service.bundle.graph_file import DECODE, ENCODE, check_graph
from service.bundle.manifest import Manifest
from service.bundle.regular_file import open_regular


def file_sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mismatches(directory: Path, checksums: Mapping[str, str]) -> list[str]:
    """Return one line for each file under `directory` that is missing, can't be read or differs from its checksum."""
    problems = []
    for name, expected in checksums.items():
        path = directory / name
        try:
            if file_sha256(path) != expected:
                problems.append(f"{name} does not match its checksum")
        except FileNotFoundError:
            problems.append(f"{name} is missing")
        except OSError as error:
            problems.append(f"{name} can't be read: {error.strerror}")
    return problems


def check_intact(directory: Path, manifest: Manifest) -> None:
    """Check every file of a bundle against its manifest, and that its graphs refer to nothing else."""
    check_parsed(directory, manifest)
    check_weights(directory, manifest)


def check_weights(directory: Path, manifest: Manifest) -> None:
    """Check the files that nothing parses: they hold numbers, of which none is wrong before it is computed with."""
    parsed = _parsed(manifest)
    _check(directory, {name: each for name, each in manifest.checksums.items() if name not in parsed})


def check_parsed(directory: Path, manifest: Manifest) -> None:
    """Check the files that native code parses, and that graphs refer to nothing else. All damage is named at once."""
    if mismatches(directory, _parsed(manifest)):
        _check(directory, manifest.checksums)
    graphs = manifest.graphs
    fused = {graphs.encoder: ENCODE, graphs.decoder_step: DECODE} if manifest.is_fused else {}
    for name in graphs.files:
        check_graph(directory / name, manifest.checksums, fused.get(name, ""))


def _parsed(manifest: Manifest) -> dict[str, str]:
    names = (*manifest.graphs.files, *manifest.tokenizer.files)
    return {name: manifest.checksums[name] for name in names}


def _check(directory: Path, checksums: Mapping[str, str]) -> None:
    problems = mismatches(directory, checksums)
    if problems:
        found = "; ".join(problems)
        raise BundleError(f"{directory} is damaged: {found}. Put an intact copy there, or {CONVERT_AGAIN}.")


def staleness(bundle: Path, weights: Path) -> str | None:
    """Return why the bundle is not a current export of the checkpoint's weights; `None` if it is."""
    try:
        manifest = Manifest.load(bundle)
        check_intact(bundle, manifest)
    except BundleError as error:
        return str(error)
    if manifest.checkpoint_sha256 != file_sha256(weights):
        return f"{bundle} was made from other weights than {weights}"
    return None


def stale(models: Path, checkpoints: Path) -> list[str]:
    """Return why checkpoints in the folder lack a current bundle at MODELS/<name>/1, one reason for each that does."""
    weights = sorted(checkpoints.glob("*/model.safetensors"))
    reasons = [staleness(models / path.parent.name / "1", path) for path in weights]
    return [reason for reason in reasons if reason is not None]


if __name__ == "__main__":
    outdated = stale(Path(sys.argv[1]), Path(sys.argv[2]))
    if outdated:
        sys.exit("\n".join(outdated))
