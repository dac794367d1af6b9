"""Imports a bare state dict of a Transformer, accompanied by `--config`, tokenizers and languages.

Its author's module, if there is one, tells what the weights are; or else their names do.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from export.importers.imported import ImportedCheckpoint
from export.importers.module.author import Author, AuthorReference, copied_author, load_author
from export.importers.module.importer import read_module
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.state_dict.file import find_state_dict, load, named_tensors
from export.importers.state_dict.finish import Companions, finish, read_companions
from export.importers.state_dict.layout import choose_layout, read_layout, shipped
from export.importers.state_dict.model import Built, build_model
from export.importers.state_dict.saved import Saved, read_saved


def import_state_dict(path: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a state dict's file, or a folder that contains one, and the files that `options` name."""
    problems = options.unsuited("--config", "--tokenizer", "--target-tokenizer", "--names", "--like")
    if options.like and options.names is not None:
        problems.append("--names is for names that no --like explains; give one of them")
    file = read_part("the state dict", lambda: find_state_dict(path), problems)
    document = None if file is None else read_part("the state dict", lambda: load(file), problems)
    tensors = None if document is None else read_part("the state dict", lambda: named_tensors(document), problems)
    if not options.like:
        return _by_names(path, file, document, tensors, options, problems)
    companions = read_companions(options, Saved(), problems)
    author = None
    if tensors is not None and not problems:
        author = read_part("--like", lambda: load_author(options.like, tensors), problems)
    return _by_module(path, file, author, companions, problems)


def import_in_memory(given: nn.Module | Mapping[str, Tensor], options: ImportOptions) -> ImportedCheckpoint:
    is_module = isinstance(given, nn.Module)
    problems = options.unsuited("--config", "--tokenizer", "--target-tokenizer", "--logits" if is_module else "--names")
    if isinstance(given, nn.Module):
        companions = read_companions(options, Saved(), problems)
        author = read_part("the module", partial(copied_author, given, options.logits), problems)
        return _by_module(Path(type(given).__name__), None, author, companions, problems)
    tensors = read_part("the state dict", lambda: named_tensors(given), problems)
    return _by_names(Path("model"), None, None, tensors, options, problems)


def _by_names(
    path: Path,
    file: Path | None,
    document: Any,
    tensors: Mapping[str, Tensor] | None,
    options: ImportOptions,
    problems: list[str],
) -> ImportedCheckpoint:
    named = options.names
    layouts = shipped() if named is None else read_part(f"--names {named.name}", lambda: [read_layout(named)], problems)
    chosen = saved = None
    if tensors is not None and layouts:
        chosen = read_part("the state dict", lambda: choose_layout(tensors, layouts), problems)
    if file is not None and chosen is not None:
        saved = read_part(path.name, partial(read_saved, file, document, chosen[0].saved, options, problems), problems)
    companions = read_companions(options, saved or Saved(), problems)
    built = Built()
    if tensors is not None and chosen is not None and companions.settings is not None:
        built = build_model(companions.settings, tensors, *chosen, problems)
    return finish(path, file, companions, built.config, built.weights, problems, built.notes)


def _by_module(
    path: Path, file: Path | None, author: Author | None, companions: Companions, problems: list[str]
) -> ImportedCheckpoint:
    model = None
    if author is not None and not problems:
        model = read_part("the module", partial(read_module, author, companions), problems)
    if author is None or model is None:
        return finish(path, file, companions, None, None, problems)
    checkpoint = finish(path, file, companions, model.config, model.weights, problems)
    reference = AuthorReference(author, model.config.decoder_start_id, model.config.eos_id, checkpoint.suppressed_ids)
    return replace(checkpoint, open_reference=lambda: nullcontext(reference), reference_searches=False)
