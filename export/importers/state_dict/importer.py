"""Imports a bare state dict of a Transformer, accompanied by `--config`, tokenizers and languages.

Its author's module, if there is one, tells what the weights are; or else their names do.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor, nn

from export.importers.imported import ImportedCheckpoint
from export.importers.module.author import Author, AuthorReference, copied_author, load_author
from export.importers.module.importer import read_module
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.state_dict.file import find_state_dict, named_tensors, read_state_dict
from export.importers.state_dict.finish import Companions, finish, read_companions
from export.importers.state_dict.layout import choose_layout, read_layout, shipped
from export.importers.state_dict.model import Built, build_model


def import_state_dict(path: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a state dict's file, or a folder that contains one, and the files that `options` name."""
    problems = options.unsuited("--config", "--tokenizer", "--target-tokenizer", "--names", "--like")
    if options.like and options.names is not None:
        problems.append("--names is for names that no --like explains; give one of them")
    file = read_part("the state dict", lambda: find_state_dict(path), problems)
    tensors = None if file is None else read_part("the state dict", lambda: read_state_dict(file), problems)
    companions = read_companions(options, problems)
    if not options.like:
        return _by_names(path, file, tensors, companions, problems)
    author = None
    if tensors is not None and not problems:
        author = read_part("--like", lambda: load_author(options.like, tensors), problems)
    return _by_module(path, file, author, companions, problems)


def import_in_memory(given: nn.Module | Mapping[str, Tensor], options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a module, or a state dict by its names."""
    is_module = isinstance(given, nn.Module)
    problems = options.unsuited("--config", "--tokenizer", "--target-tokenizer", "--logits" if is_module else "--names")
    companions = read_companions(options, problems)
    if isinstance(given, nn.Module):
        author = read_part("the module", partial(copied_author, given, options.logits), problems)
        return _by_module(Path(type(given).__name__), None, author, companions, problems)
    tensors = read_part("the state dict", lambda: named_tensors(given), problems)
    return _by_names(Path("model"), None, tensors, companions, problems)


def _by_names(
    path: Path, file: Path | None, tensors: Mapping[str, Tensor] | None, companions: Companions, problems: list[str]
) -> ImportedCheckpoint:
    named = companions.options.names
    layouts = shipped() if named is None else read_part(f"--names {named.name}", lambda: [read_layout(named)], problems)
    built = Built()
    if tensors is not None and layouts:
        chosen = read_part("the state dict", lambda: choose_layout(tensors, layouts), problems)
        if chosen is not None and companions.settings is not None:
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
