"""Writes a bundle again, with a shortlist."""

import shutil
from collections.abc import Callable
from pathlib import Path

from export.bundle_writer import bundle_bytes, check_destination, staged_bundle
from export.importers import stored_file
from export.listed_bundle import listed, require_listable
from export.shortlist import MOST_LIST_BYTES, Shortlist, read_shortlist
from export.shortlist_building import count_translations, read_lexicon
from export.stages import Stages
from service.bundle.manifest import Manifest
from service.engine.runtime.kernels import find_kernels

_BINARY = ".bin"


def write_listed(
    bundle: Path,
    destination: Path,
    texts: Path | None,
    lexicon: Path | None,
    first: int,
    best: int,
    check: Path | None,
    say: Callable[[str], None],
    *,
    force: bool = False,
) -> Manifest:
    """Write a bundle to `destination` with a shortlist, made of translations of `texts` or read from `lexicon`.

    With `force`, it may replace a bundle.

    `first` tokens are always allowed, `best` by each source token. `check` has lines of source, tab and reference.
    """
    clock = Stages(say)
    check_destination(destination, force=force)
    manifest = Manifest.load(bundle)
    require_listable(manifest)
    find_kernels()  # for the engine
    pairs = [] if check is None else [line.split("\t") for line in _lines(check)]
    if any(len(pair) < 2 for pair in pairs):
        raise ValueError(f"{check} has a line without a tab; expected are a source, a tab and a reference")
    made = _shortlist(bundle, manifest, texts, lexicon, first, best)
    clock.done("count", f"lists of {len(made.offsets) - 1} tokens, {len(made.ids)} ids")
    sources = [pair[0] for pair in pairs] or [golden.text for golden in manifest.golden]
    with staged_bundle(destination, force=force) as directory:
        shutil.copytree(bundle, directory, dirs_exist_ok=True)
        manifest, cost = listed(directory, manifest, made, sources, [pair[1] for pair in pairs])
        manifest.save(directory)
    clock.done("list", cost.line())
    clock.done("write", f"{destination} ({bundle_bytes(destination) / 1e6:.1f} MB)")
    return manifest


def _shortlist(
    bundle: Path, manifest: Manifest, texts: Path | None, lexicon: Path | None, first: int, best: int
) -> Shortlist:
    sizes = int(manifest.architecture["source_vocabulary_size"]), manifest.model.vocabulary_size
    if lexicon is not None and lexicon.suffix == _BINARY:
        has_start = manifest.tokenizer.decoder_start_id == sizes[1] - 1  # a student's start, which is no piece
        return read_shortlist(stored_file.read(lexicon, MOST_LIST_BYTES), *(size - has_start for size in sizes))
    if lexicon is not None:
        counts = read_lexicon(lexicon, bundle, manifest)
    else:
        assert texts is not None
        counts = count_translations(bundle, manifest, _lines(texts))
    return counts.shortlist(sizes[0], manifest.tokenizer.eos_id, first, best)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
