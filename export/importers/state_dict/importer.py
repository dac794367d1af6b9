"""Imports a bare state dict of a Transformer, accompanied by `--config`, tokenizers and languages."""

from pathlib import Path

from export.importers.imported import ImportedCheckpoint
from export.importers.options import ImportOptions
from export.importers.parts import read_part
from export.importers.state_dict.file import find_state_dict, read_state_dict
from export.importers.state_dict.finish import finish, read_companions
from export.importers.state_dict.layout import choose_layout, read_layout, shipped
from export.importers.state_dict.model import Built, build_model


def import_state_dict(path: Path, options: ImportOptions) -> ImportedCheckpoint:
    """Read and check a state dict's file, or a folder that contains one, and the files that `options` name."""
    problems = options.unsuited("--config", "--tokenizer", "--target-tokenizer", "--names")
    file = read_part(path.name, lambda: find_state_dict(path), problems)
    tensors = None if file is None else read_part("the state dict", lambda: read_state_dict(file), problems)
    named = options.names
    layouts = shipped() if named is None else read_part(f"--names {named.name}", lambda: [read_layout(named)], problems)
    companions = read_companions(options, problems)
    built = Built()
    if tensors is not None and layouts:
        chosen = read_part("the state dict", lambda: choose_layout(tensors, layouts), problems)
        if chosen is not None and companions.settings is not None:
            built = build_model(companions.settings, tensors, *chosen, problems)
    return finish(path, file, companions, built.config, built.weights, problems, built.notes)
