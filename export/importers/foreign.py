"""Recognises folders of other tools by their file names: what each is, and how to convert it."""

from dataclasses import dataclass
from pathlib import Path

from export.importers.files import Layout, find, holding
from export.importers.json_file import read_json
from export.importers.weight_files import INDEX_SUFFIX, SINGLE_NAMES

_ADAPTER_NAME = "adapter_config.json"
_ADAPTER_FILES = (_ADAPTER_NAME, "adapter_model.*", "pytorch_adapter.bin")
_MERGE = "give its base model with --base, and it is merged into that"
_OTHER_WEIGHTS = (
    "take model.safetensors or pytorch_model.bin of the same model, or write it with transformers 4: "
    "AutoModelForSeq2SeqLM.from_pretrained(FOLDER, from_tf=True, or from_flax=True).save_pretrained(NEW)"
)


@dataclass(frozen=True, slots=True)
class _Tool:
    """`files` are those that its folders have at least; `advice` is what to do instead."""

    what: str
    files: Layout
    advice: str


_TOOLS = (
    _Tool(
        "a PEFT adapter",
        ((_ADAPTER_NAME,),),
        _MERGE,
    ),
    _Tool(
        "a checkpoint of fairseq",
        (("*.pt",), ("*dict*.txt",)),
        "of M2M100 and NLLB-200 take the folder for transformers, e.g. facebook/m2m100_418M; others can't be converted",
    ),
    _Tool(
        "a checkpoint of Keras or TensorFlow",
        (("tf_model*.h5", "*.ckpt.index", "saved_model.pb"),),
        _OTHER_WEIGHTS,
    ),
    _Tool("a checkpoint of Flax", (("flax_model*.msgpack",),), _OTHER_WEIGHTS),
    _Tool("a checkpoint of rust-bert", (("rust_model.ot",),), _OTHER_WEIGHTS),
    _Tool("a model of llama.cpp", (("*.gguf",),), "take the folder that it was made from"),
    _Tool(
        "a bundle of Dragoman",
        (("manifest.json",), ("encoder.onnx",)),
        "it is converted already; 'python -m export inspect' describes it, 'dragoman serve --models' serves it",
    ),
    _Tool(
        "a model in ONNX",
        (("*.onnx",),),
        "its graphs are made for other programs; take the folder that it was made from",
    ),
)


def recognise(directory: Path) -> str | None:
    """Return what a folder of another tool is and what to do; `None` if unknown or if it holds weights we read, and no
    adapter that would change them.
    """
    if find(directory, [*SINGLE_NAMES, *(f"{name}{INDEX_SUFFIX}" for name in SINGLE_NAMES)]):
        adapter = find(directory, _ADAPTER_FILES)[:1]
        if not adapter:
            return None
        return (
            f"it holds a PEFT adapter ({adapter[0].name}) beside a model, and {_ADAPTER_NAME} is needed to merge it; "
            "add that, or remove the adapter's files to convert the model without it"
        )
    for tool in _TOOLS:
        if found := holding(directory, tool.files):
            names = ", ".join(path.name for path in found)
            return f"it is {tool.what} ({names}){_base_model(found)}: {tool.advice}"
    return None


def _base_model(files: list[Path]) -> str:
    """Return the base model of an adapter, if `files` have its settings, and these name one."""
    settings = next((path for path in files if path.name == _ADAPTER_NAME), None)
    if settings is None:
        return ""
    try:
        name = read_json(settings).get("base_model_name_or_path")
    except ValueError:
        return ""
    return f" of {name[:100]!r}" if isinstance(name, str) and name else ""
