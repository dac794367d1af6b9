"""Recognises what can't be converted (wrong paths, parts, folders of other tools), and says what to do instead."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from export.importers.files import Layout, find, holding
from export.importers.json_file import read_json
from export.importers.weight_files import INDEX_SUFFIX, SINGLE_NAMES

_LFS = b"version https://git-lfs.github.com/spec/v1"
_POINTER_BYTES = 1024  # git-lfs itself reads no larger file as a pointer
_PARTS = (".incomplete", ".part", ".crdownload", ".aria2", ".download")
_WEIGHTS = (".safetensors", ".bin", ".npz", ".gz", ".zst")
_START_BYTES = 512
# How files begin that we don't read.
_OTHERS = (
    (rb"GGUF", "a file of llama.cpp, whose weights are quantized for it", "give the folder that it was made from"),
    (rb"\x1f\x8b", "compressed by gzip", "unpack it and give the folder"),
    (rb"\x28\xb5\x2f\xfd", "compressed by Zstandard", "unpack it and give the folder"),
    (rb"version https://git-lfs", "a pointer of git-lfs", "run 'git lfs pull' in its folder, and give that"),
    (rb"(?i)\s*<(!doctype|html)", "a web page", "download the file that it leads to"),
    (rb"$", "empty", "download it again"),
)
# torch's zips begin with the name of their pickle, its files before 1.6 with the pickle of a number.
_MAGIC = (
    (
        rb"PK\x03\x04.{26}[^/]*/data\.pkl|\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.",
        "a file of torch",
        "if it is a bare state dict, give it with --from pytorch; else give the folder that it belongs to",
    ),
    (rb"PK\x03\x04", "a zip archive", "unpack it and give the folder"),
    *_OTHERS,
)
_NAMED = 5


def mistaken_path(path: Path) -> str:
    if not path.exists():
        return f"there is no such file or folder{_near(path)}"
    if not path.is_file():
        return "it is neither a folder nor a file"
    try:
        if known := _recognised(path, _MAGIC):
            return known
    except OSError as error:
        return f"it can't be read ({error.strerror}); change its permissions"
    if path.suffix == ".safetensors" or (path.parent / "config.json").is_file():
        return f"it is a file; give its folder, {path.parent}, which must hold the settings and the tokenizer, too"
    return "it is not a folder; give the folder that holds the checkpoint's files"


def mistaken_file(path: Path) -> str | None:
    """Return what a file is that is neither weights nor a tokenizer, and what to do; `None` if that is not known."""
    return _recognised(path, _OTHERS)


def _recognised(path: Path, kinds: Iterable[tuple[bytes, str, str]]) -> str | None:
    if not path.is_file():  # others are not waited for
        return None
    with path.open("rb") as file:
        start = file.read(_START_BYTES)
    return next((f"it is {what}; {advice}" for magic, what, advice in kinds if re.match(magic, start, re.DOTALL)), None)


def mistaken_folder(directory: Path) -> str | None:
    """Return what is wrong with a folder, whatever the kind of checkpoint, and what to do; `None` if nothing is."""
    files = [path for path in directory.iterdir() if path.is_file()]
    if not files:
        inner = sorted(path.name for path in directory.iterdir() if path.is_dir() and path.name[0] != ".")
        return f"it holds only folders ({_listed(inner)}): give one of them, or --all" if inner else "it holds no files"
    pointers = sorted(path.name for path in files if _is_pointer(path))
    if pointers:
        return (
            f"{_listed(pointers)} are pointers of git-lfs and not the files themselves; run 'git lfs install' and "
            "'git lfs pull' there, or download them"
        )
    if any(path.suffix in _WEIGHTS for path in files):
        return None
    parts = sorted(path.name for path in files if path.suffix in _PARTS)
    return f"{_listed(parts)} are incomplete downloads; download them again" if parts else None


def _is_pointer(path: Path) -> bool:
    if path.stat().st_size > _POINTER_BYTES:
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS)) == _LFS


def _near(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f", nor {parent}; check the path"
    near = get_close_matches(path.name, [each.name for each in parent.iterdir()], 1)
    return f"; nearest is {parent / near[0]}" if near else f" in {parent}; check the path"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


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
        "of M2M100 and NLLB-200 take the folder for transformers, e.g. facebook/m2m100_418M; dictionaries of others "
        "are dict.LANGUAGE.txt beside their checkpoint",
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
        "it is already converted; 'python -m export inspect' describes it, 'dragoman serve --models' serves it",
    ),
    _Tool(
        "a model in ONNX",
        (("*.onnx",),),
        "its graphs are made for other programs; take the folder that it was made from",
    ),
)


def foreign_folder(directory: Path) -> str | None:
    """Return what another tool's folder is and what to do; `None` if unknown, or it has weights and no adapter."""
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


# Settings of OpenNMT-py, and of EOLE, which follows it.
_OF_OPENNMT = frozenset(("src_vocab", "transforms", "transforms_configs", "rnn_size", "enc_rnn_size", "hidden_size"))


def unknown_settings(document: Mapping[str, Any]) -> str:
    """Return what to do with a `config.json` that names no `model_type` and is not of our own format."""
    given = "it has no model_type"
    if found := sorted(_OF_OPENNMT & document.keys()):
        return (
            f"{given}, and {_listed(found)} as OpenNMT-py's and EOLE's have; CTranslate2's "
            "ct2-opennmt-py-converter, or python -m ctranslate2.converters.eole_ct2, makes a folder that can "
            "be converted"
        )
    return f"{given}, as transformers' have, nor source_vocabulary_size, as our own format's"


_INSTEAD = "OPUS-MT, NLLB-200, M2M100 and mBART-50 translate between the same languages"
_DENSE = "its dense relatives, such as facebook/nllb-200-3.3B, can be converted"

# Patterns of `model_type`. The first one counts.
_KINDS = (
    ("nllb[-_]moe", f"a mixture of experts, which the engine has no operators for; {_DENSE}"),
    ("switch_transformers|.*[-_]moe", "a mixture of experts, which the engine has no operators for"),
    ("seamless_m4t.*", "a model of speech and text, of which only parts translate texts; take NLLB-200 instead"),
    ("whisper.*|speech_to_text.*|speecht5|moonshine.*", "a model of speech, which does not read texts"),
    ("fsmt", f"a model whose texts are split by Moses and BPE rules that are not supported; {_INSTEAD}"),
    ("(bigbird_)?pegasus.*", "a summariser with a tokenizer of its own, not a translator; BART's can be converted"),
    ("(xlm-)?prophetnet", f"a model that predicts several tokens at once with attention of its own; {_INSTEAD}"),
    ("led|longt5|longformer.*|reformer", "a model with attention to parts of a text, which the engine does not have"),
)
# TranslateGemma and HY-MT are among these; most of them also say so by their class.
_DECODERS = re.compile(
    "(llama|gpt|gemma|qwen|mi[nsx]tral|ministral|phi|opt|bloom|falcon|xglm|hunyuan|hy_v|deepseek|cohere|olmo|glm|smollm|"
    "stablelm|granite|mpt|nemotron|kimi|minimax|seed_oss).*"
)
_ENCODERS = re.compile(".*bert|(xlm-)?roberta.*|electra|deberta.*|ernie|xlnet|canine")


def refused_type(document: Mapping[str, Any]) -> str | None:
    """Return why the model of a `config.json` can't be converted; `None` if it is of no kind that is known here."""
    model_type, classes = str(document.get("model_type"))[:60], document.get("architectures")
    known = next((what for pattern, what in _KINDS if re.fullmatch(pattern, model_type)), None)
    named = [str(name)[:60] for name in classes] if isinstance(classes, list) else []
    if known is None and (_DECODERS.fullmatch(model_type) or any(name.endswith("ForCausalLM") for name in named)):
        by_name = f" ({named[0]})" if named else ""
        known = f"a decoder-only model{by_name}; only encoder-decoder models can be converted"
    if known is None and _ENCODERS.fullmatch(model_type):
        known = "an encoder-only model, which does not generate; only encoder-decoder models can be converted"
    return None if known is None else f"model_type is {model_type!r}, {known}"
