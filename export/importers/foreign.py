"""Folders of other tools, told by the names of their files: what each is, and what can be done with it."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from export.importers.json_file import read_json
from export.importers.weight_files import INDEX_SUFFIX, SINGLE_NAMES

_ADAPTER_NAME = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class _Tool:
    """`files` are alternatives for each file that has to be there; `advice` is what to do instead."""

    what: str
    files: tuple[tuple[str, ...], ...]
    advice: str


_TOOLS = (
    _Tool(
        "a PEFT adapter",
        ((_ADAPTER_NAME,),),
        "merge it into its base model with peft (merge_and_unload, then save_pretrained) and convert that folder",
    ),
    _Tool(
        "a model of Bergamot",
        (("*.intgemm*.bin*",),),
        "its weights are for browsers; take an OPUS-MT folder of the languages, e.g. Helsinki-NLP/opus-mt-en-de",
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
    """What a folder of another tool is and what to do; `None` if it is of none, or holds weights that we read."""
    names = sorted(path.name for path in directory.iterdir())
    if any(name in names or f"{name}{INDEX_SUFFIX}" in names for name in SINGLE_NAMES):
        return None
    for tool in _TOOLS:
        found = [_first(names, patterns) for patterns in tool.files]
        if all(found):
            return f"it is {tool.what} ({', '.join(found)}){_base_model(directory, found)}: {tool.advice}"
    return None


def _first(names: list[str], patterns: tuple[str, ...]) -> str:
    """The first name that one of the patterns fits, or nothing."""
    return next((name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)), "")


def _base_model(directory: Path, found: list[str]) -> str:
    """Of which model an adapter is, if it says so."""
    if _ADAPTER_NAME not in found:
        return ""
    try:
        name = read_json(directory / _ADAPTER_NAME).get("base_model_name_or_path")
    except ValueError:
        return ""
    return f" of {name[:100]!r}" if isinstance(name, str) and name else ""
