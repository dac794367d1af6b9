"""Recognises folders of other tools by their file names: what each is, and how to convert it."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from export.importers.json_file import read_json
from export.importers.weight_files import INDEX_SUFFIX, SINGLE_NAMES

_ADAPTER_NAME = "adapter_config.json"
_ADAPTER_FILES = (_ADAPTER_NAME, "adapter_model.*", "pytorch_adapter.bin")
_MERGE = "merge it into its base model with peft (merge_and_unload, then save_pretrained) and convert that folder"


@dataclass(frozen=True, slots=True)
class _Tool:
    """`files` are alternatives for each required file; `advice` is what to do instead."""

    what: str
    files: tuple[tuple[str, ...], ...]
    advice: str


_TOOLS = (
    _Tool(
        "a PEFT adapter",
        ((_ADAPTER_NAME,),),
        _MERGE,
    ),
    _Tool(
        "a model of CTranslate2",
        (("model.bin",), ("*vocabulary.json", "*vocabulary.txt")),
        "its weights are laid out for that engine; convert the checkpoint that it was made from",
    ),
    _Tool(
        "a checkpoint of Marian itself",
        (("*.npz",),),
        "make a folder for transformers of it, with transformers 4.40: "
        "python -m transformers.models.marian.convert_marian_to_pytorch --src FOLDER --dest NEW",
    ),
    _Tool(
        "a checkpoint of fairseq",
        (("*.pt",), ("*dict*.txt",)),
        "of M2M100 and NLLB-200 take the folder for transformers, e.g. facebook/m2m100_418M; others can't be converted",
    ),
)


def recognise(directory: Path) -> str | None:
    """Return what a folder of another tool is and what to do; `None` if unknown or if it holds weights we read, and no
    adapter that would change them.
    """
    names = sorted(path.name for path in directory.iterdir())
    if any(name in names or f"{name}{INDEX_SUFFIX}" in names for name in SINGLE_NAMES):
        found = [_first(names, _ADAPTER_FILES)]
        if not found[0]:
            return None
        return (
            f"it holds a PEFT adapter ({found[0]}){_base_model(directory, found)} beside a model: {_MERGE}, or remove "
            "the adapter's files to convert the model without it"
        )
    for tool in _TOOLS:
        found = [_first(names, patterns) for patterns in tool.files]
        if all(found):
            return f"it is {tool.what} ({', '.join(found)}){_base_model(directory, found)}: {tool.advice}"
    return None


def _first(names: list[str], patterns: tuple[str, ...]) -> str:
    """Return the first name that matches one of the patterns, or an empty string."""
    return next((name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)), "")


def _base_model(directory: Path, found: list[str]) -> str:
    """Return the base model of an adapter, if it names one."""
    if _ADAPTER_NAME not in found:
        return ""
    try:
        name = read_json(directory / _ADAPTER_NAME).get("base_model_name_or_path")
    except ValueError:
        return ""
    return f" of {name[:100]!r}" if isinstance(name, str) and name else ""
