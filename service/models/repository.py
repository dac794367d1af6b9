"""What lies on disk: `<root>/<model>/<version>/`, or one bundle by itself. Reads manifests, never weights."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.bundle.manifest import MANIFEST_NAME, BundleError, Manifest

ALL = "*"  # among names: all models

Stamp = frozenset[tuple[str, int, int]]  # name, size and time of the last change of every file of a bundle


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle that is to be served. `version` is the name of its folder; empty for a bundle outside a repository.

    Two are equal if they lie at the same place under the same manifest, and so under the same checksums. The `stamp`
    tells whether its files were touched since, whatever the manifest says.
    """

    directory: Path
    version: str
    manifest: Manifest
    stamp: Stamp = field(compare=False)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.manifest.name

    @property
    def model_directory(self) -> Path:
        """Where the versions of this model lie; a bundle outside a repository is its model's only one."""
        return self.directory.parent if self.version else self.directory


@dataclass(frozen=True, slots=True)
class ModelDirectory:
    """A folder for one model: the bundles in it that should be served, highest version first, and a line about each
    that can't be."""

    path: Path
    bundles: tuple[FoundBundle, ...]
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the model is called: what its manifests say or, where none can be read, its folder."""
        return self.bundles[0].name if self.bundles else self.path.name


def find_bundles(path: Path, max_versions: int = 1, names: Collection[str] = (ALL,)) -> list[FoundBundle]:
    """List the bundles to serve, in order of model names, of each model the highest version first.

    `names` are the models that are wanted; `*` stands for all. If none is, nothing is read.

    Raises:
        BundleError: `path` is missing or holds no bundle, there is no model of one of the names, or of those that are
            wanted a manifest is unusable, or two share a name.
    """
    if not names:
        return []
    models = [model for model in read_models(path, max_versions) if model.bundles or model.faults]
    if ALL not in names:
        known = [model.name for model in models]
        for name in sorted(set(names) - set(known)):
            raise BundleError(f"{path} holds no model {name!r}; it holds {', '.join(known)}.")
        models = [model for model in models if model.name in names]
    faults = dict.fromkeys(fault for model in models for fault in model.faults)
    if faults:
        raise BundleError(" ".join(faults))
    in_order = sorted(models, key=lambda model: model.bundles[0].name)
    return [bundle for model in in_order for bundle in model.bundles]


def read_models(path: Path, max_versions: int) -> list[ModelDirectory]:
    """List the folders at `path` in order, each with so many of its highest versions.

    `path` is either one bundle or a repository `<root>/<model>/<version>/`, versions being whole numbers. Other
    files are ignored. A version without a usable manifest is a fault, not a gap, and so is a name that models share.

    Raises:
        BundleError: `path` is missing or holds no bundle, or it is a single one with an unusable manifest.
    """
    try:
        if not path.is_dir():
            raise BundleError(f"{path} is no directory; write a bundle with 'make export' or give one with --models.")
        if (path / MANIFEST_NAME).exists():
            return [ModelDirectory(path, (_read_bundle(path, ""),))]
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir())
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}.") from error
    models = [_read_model(folder, max_versions) for folder in folders]
    if not any(model.bundles or model.faults for model in models):
        raise BundleError(
            f"{path} holds neither {MANIFEST_NAME} nor <model>/<version>/{MANIFEST_NAME}; "
            "write a bundle with 'make export' or give one with --models."
        )
    return _without_shared_names(models)


def _read_model(folder: Path, max_versions: int) -> ModelDirectory:
    try:
        versions = [entry.name for entry in folder.iterdir() if _is_version(entry.name) and entry.is_dir()]
    except FileNotFoundError:  # gone since it was listed
        versions = []
    except OSError as error:
        return ModelDirectory(folder, (), (f"{folder} can't be read: {error.strerror}.",))
    bundles, faults = [], []
    for version in sorted(versions, key=version_number, reverse=True)[:max_versions]:
        try:
            bundles.append(_read_bundle(folder / version, version))
        except BundleError as error:
            if (folder / version).is_dir():  # else it is gone since it was listed
                faults.append(str(error))
    return ModelDirectory(folder, tuple(bundles), tuple(faults))


def version_number(version: str) -> int:
    """By what versions are ordered; the empty one, of a bundle outside a repository, comes first."""
    return int(version or -1)


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _read_bundle(directory: Path, version: str) -> FoundBundle:
    stamp = _stamp(directory)  # before the rest: what changes meanwhile is seen the next time
    return FoundBundle(directory, version, Manifest.load(directory), stamp)


def _stamp(directory: Path) -> Stamp:
    """The time is that of any change: of contents, permissions, or which file has the name."""
    files = set()
    try:
        for path in (directory, *directory.rglob("*")):
            status = path.stat()
            files.add((str(path), status.st_size, status.st_ctime_ns))
    except OSError:
        pass  # it is being changed, or can't be read: the manifest or the checksums will tell
    return frozenset(files)


def _without_shared_names(models: Sequence[ModelDirectory]) -> list[ModelDirectory]:
    """Refuse all bundles of a name that several models claim, as nobody can say which one is meant."""
    homes: dict[str, dict[Path, None]] = {}
    for model in models:
        for bundle in model.bundles:
            homes.setdefault(bundle.name, {})[model.path] = None
    faults = {
        name: f"{' and '.join(map(str, paths))} share the name {name!r}; remove all but one."
        for name, paths in homes.items()
        if len(paths) > 1
    }
    return [
        ModelDirectory(
            model.path,
            tuple(bundle for bundle in model.bundles if bundle.name not in faults),
            (*model.faults, *dict.fromkeys(faults[bundle.name] for bundle in model.bundles if bundle.name in faults)),
        )
        for model in models
    ]
