"""The kinds of checkpoints that we read: a line each. An importer is loaded when it is needed: torch takes seconds."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from export.importers.files import Layout, holding

if TYPE_CHECKING:
    from export.importers.imported import ImportedCheckpoint
    from export.importers.options import ImportOptions

    Importer = Callable[[Path, ImportOptions], ImportedCheckpoint]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of checkpoint, and how it is recognised.

    `importer` names a module below `export.importers` and its function; `model_types` are values of `model_type` in
    transformers' `config.json`; `layouts` are alternative sets of a folder's files. If it `is_file`, a checkpoint may
    be a file, recognised by its `suffix`.
    """

    name: str
    importer: str
    model_types: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] = ()
    is_file: bool = False
    suffix: str = ""

    def load(self) -> "Importer":
        module, function = self.importer.split(":")
        found: Importer = getattr(importlib.import_module(f"export.importers.{module}"), function)
        return found

    def has(self, directory: Path) -> bool:
        return any(holding(directory, layout) is not None for layout in self.layouts)


_MARIAN = ("model*.bin", "*.npz")
KINDS = (
    Kind("native", "native.importer:import_native"),
    Kind("marian", "huggingface.marian:import_marian", model_types=("marian",)),
    Kind("m2m100", "huggingface.m2m100:import_m2m100", model_types=("m2m_100",)),
    Kind("small100", "huggingface.m2m100:import_small100"),
    Kind("mbart", "huggingface.mbart:import_mbart", model_types=("mbart", "bart", "plbart")),
    Kind("t5", "huggingface.t5:import_t5", model_types=("t5", "mt5", "umt5")),
    Kind("indictrans2", "huggingface.indictrans2:import_indictrans2", model_types=("IndicTrans",)),
    Kind(
        "pytorch",
        "state_dict.importer:import_state_dict",
        layouts=((("*.pt",), ("dict.*.txt",)), (("*.ckpt",), ("src_vocab.txt",))),  # fairseq's and Joey NMT's
        is_file=True,
    ),
    Kind(
        "ctranslate2",
        "ctranslate2.importer:import_ctranslate2",
        layouts=(
            (("model.bin",), ("*vocabulary.json", "*vocabulary.txt")),
            (("metadata.json",), ("model/model.bin",)),
        ),
        is_file=True,
        suffix=".argosmodel",
    ),
    Kind(
        "marian-files",
        "marian_files.importer:import_marian_files",
        layouts=(
            (("*.intgemm*.bin",),),
            (("model*.npz",),),
            (_MARIAN, ("vocab*.spm", "model*.spm", "*vocab.yml", "decoder.yml")),
            (_MARIAN, ("srcvocab*.spm",), ("trgvocab*.spm",)),
        ),
    ),
)
NAMES = tuple(kind.name for kind in KINDS)


def by_suffix(path: Path) -> Kind | None:
    return next((kind for kind in KINDS if kind.suffix and path.suffix == kind.suffix), None)
