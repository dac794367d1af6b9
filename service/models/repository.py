"""Bundles on disk: `<root>/<model>/<version>/`, or a single bundle. Reads manifests, never weights."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.domain.errors import counted

ALL = "*"  # as a name: all models

Stamp = frozenset[tuple[str, int, int]]  # name, size and ctime of every file of a bundle


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle that should be served.

    `version` is the name of its folder; empty for a bundle outside a repository. Equal ones have the same directory and
    manifest, hence checksums. The `stamp` shows if files were changed since.
    """

    directory: Path
    version: str
    manifest: Manifest
    stamp: Stamp = field(compare=False)

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def num_bytes(self) -> int:
        files = (self.directory / name for name in self.manifest.checksums)
        return sum(file.stat().st_size for file in files if file.is_file())

    @property
    def model_directory(self) -> Path:
        """Return the directory of the model's versions; a bundle outside a repository is its model's only one."""
        return self.directory.parent if self.version else self.directory


@dataclass(frozen=True, slots=True)
class ModelDirectory:
    """A model's folder: its bundles that should be served, highest version first, and a line on each that can't be."""

    path: Path
    bundles: tuple[FoundBundle, ...]
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.bundles[0].name if self.bundles else self.path.name


def check_names(path: Path, models: Sequence[ModelDirectory], names: Collection[str]) -> None:
    """Check that each of the `names` asked for, unless it is `*`, is one of the `models` at `path`."""
    known = [model.name for model in models if model.bundles or model.faults]
    for name in sorted(set(names) - {ALL, *known}):
        raise BundleError(f"{path} holds no model {name!r}; it holds {', '.join(known)}.")


def read_models(path: Path, max_versions: int, served: Collection[Path] = ()) -> list[ModelDirectory]:
    """List the folders at `path` in order, each with up to `max_versions` of its highest versions.

    `path` is one bundle or a repository `<root>/<model>/<version>/`, where versions are whole numbers; other files are
    ignored. A version without a usable manifest is a fault, as are all but one of several models of one name: the one
    whose folder is `served` stays, else that whose folder has the name.
    """
    try:
        if not path.is_dir():
            raise BundleError(
                f"{path} is not a directory; give one of bundles with --models. "
                "'python -m export convert' writes bundles."
            )
        if (path / MANIFEST_NAME).exists():
            return [ModelDirectory(path, (_read_bundle(path, ""),))]
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir())
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}.") from error
    models = [_read_model(folder, max_versions) for folder in folders]
    if not any(model.bundles or model.faults for model in models):
        raise BundleError(
            f"{path} holds neither {MANIFEST_NAME} nor <model>/<version>/{MANIFEST_NAME}; "
            "give a folder that does with --models. 'python -m export convert' writes bundles."
        )
    return _without_shared_names(models, served)


def _read_model(folder: Path, max_versions: int) -> ModelDirectory:
    try:
        versions = [
            entry.name for entry in folder.iterdir() if entry.name.isascii() and entry.name.isdigit() and entry.is_dir()
        ]
    except FileNotFoundError:  # removed since it was listed
        versions = []
    except OSError as error:
        return ModelDirectory(folder, (), (f"{folder} can't be read: {error.strerror}.",))
    bundles, faults = [], []
    for version in sorted(versions, key=version_number, reverse=True)[:max_versions]:
        try:
            bundles.append(_read_bundle(folder / version, version))
        except BundleError as error:
            if (folder / version).is_dir():  # otherwise it was removed since it was listed
                faults.append(str(error))
    return ModelDirectory(folder, tuple(bundles), tuple(faults))


def version_number(version: str) -> int:
    """Return the sort key of a version; the empty one, of a bundle outside a repository, comes first."""
    return int(version or -1)


def _read_bundle(directory: Path, version: str) -> FoundBundle:
    stamp = _stamp(directory)  # first, so that later changes are detected the next time
    return FoundBundle(directory, version, Manifest.load(directory), stamp)


def _stamp(directory: Path) -> Stamp:
    """Return the names, sizes and ctimes of a bundle's files: ctime changes with contents, permissions and renames."""
    files = set()
    try:
        for path in (directory, *directory.rglob("*")):
            status = path.stat()
            files.add((str(path), status.st_size, status.st_ctime_ns))
    except OSError:
        pass  # it is being changed, or can't be read: the manifest or the checksums will show that
    return frozenset(files)


def _without_shared_names(models: Sequence[ModelDirectory], served: Collection[Path]) -> list[ModelDirectory]:
    """Keep one of the models of each name; the others' bundles are faults."""
    homes: dict[str, dict[Path, None]] = {}
    for model in models:
        for bundle in model.bundles:
            homes.setdefault(bundle.name, {})[model.path] = None
    kept = {name: min(paths, key=lambda each: (each not in served, each.name != name)) for name, paths in homes.items()}
    return [_without_second(model, kept) for model in models]


def _without_second(model: ModelDirectory, kept: Mapping[str, Path]) -> ModelDirectory:
    bundles = tuple(bundle for bundle in model.bundles if kept[bundle.name] == model.path)
    second = {bundle.name: kept[bundle.name] for bundle in model.bundles if bundle not in bundles}
    faults = [
        f"{model.path} holds a model named {name!r}, as {path} does, and only the latter is served; remove one, "
        "or convert it again with another --name."
        for name, path in second.items()
    ]
    return ModelDirectory(model.path, bundles, (*model.faults, *faults))


def shared_pair(manifests: Iterable[Manifest]) -> tuple[str, str] | None:
    """Return a line on the language pairs that several models have, and which of them answers; `None` without any."""
    homes: dict[tuple[str, str], set[str]] = {}
    for manifest in manifests:
        for pair in manifest.pairs():
            homes.setdefault((pair.source_language_code, pair.target_language_code), set()).add(manifest.name)
    shared = {pair: sorted(names) for pair, names in homes.items() if len(names) > 1}
    if not shared:
        return None
    (source, target), names = next(iter(shared.items()))
    more = f", and {counted(len(shared) - 1, 'more pair')}" if len(shared) > 1 else ""
    line = f"{source}-{target} is translated by {' and '.join(names)}{more}"
    return line, f"calls that name no model get {names[0]}."
