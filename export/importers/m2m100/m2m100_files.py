"""The tokenizer files of M2M100 checkpoints: a SentencePiece model and the ids of its pieces."""

import re
from dataclasses import dataclass
from pathlib import Path

from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional, read_tokenizer_config
from export.importers.huggingface.tokenizer_files import check_model, read_vocabulary
from service.bundle.manifest_parts import TokenizerSpec

MODEL_NAME = "sentencepiece.bpe.model"
VOCABULARY_NAME = "vocab.json"

_SMALL100 = "SMALL100Tokenizer"
_DEFAULTS = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

_ADDED = re.compile(r"__(?P<code>[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*)__")  # a language that somebody added

# The tokens of these languages, in this order, have the ids after vocab.json's. From transformers 5.23,
# models/m2m_100/tokenization_m2m_100.py.
_LANGUAGES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


@dataclass(frozen=True, slots=True)
class M2M100Files:
    """The content of the files.

    `size` is the highest id plus one; models have some more unused ids. `languages` maps each language's code to the id
    of its token, which comes before a source in it and before a translation into it.
    """

    size: int
    pad_id: int
    eos_id: int
    unk_id: int
    languages: dict[str, int]
    special_tokens: dict[str, int]
    cleans_up_spaces: bool

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        """Return the manifest's entry; its `files` are to be copied."""
        return TokenizerSpec(
            kind="m2m100",
            file=MODEL_NAME,
            pad_id=self.pad_id,
            eos_id=self.eos_id,
            unk_id=self.unk_id,
            decoder_start_id=decoder_start_id,
            vocabulary_file=VOCABULARY_NAME,
            special_tokens=self.special_tokens,
            cleans_up_spaces=self.cleans_up_spaces,
        )


def names_small100(directory: Path) -> bool:
    """Return whether a folder names the class of tokenizers of SMaLL-100, which is not in transformers."""
    documents = [read_optional(directory / name, []) for name in (CONFIG_NAME, "config.json")]
    return any(
        document.get("tokenizer_class") == _SMALL100 or _SMALL100 in str(document.get("auto_map"))
        for document in documents
    )


def read_m2m100(directory: Path, is_small100: bool = False) -> M2M100Files:
    """Read and check a checkpoint's tokenizer files.

    SMaLL-100 has the same files, but a class of its own, which puts only the target's language in front of a source.
    """
    problems: list[str] = []
    check_model(directory / MODEL_NAME, problems)
    vocabulary = read_vocabulary(directory / VOCABULARY_NAME, problems)
    size, highest = len(vocabulary), max(vocabulary.values(), default=-1)
    if highest != size - 1:
        problems.append(f"{VOCABULARY_NAME}: it has {size} pieces, and ids up to {highest} instead of {size - 1}")
    config = read_tokenizer_config(directory, vocabulary, _DEFAULTS, problems)
    document = dict(config.document)
    if is_small100:
        document.pop("auto_map", None)  # names its code, which need not be run
    class_of(directory, document, ("M2M100Tokenizer", *([_SMALL100] if is_small100 else [])), problems)
    family = config.document.get("language_codes", "m2m100")
    if family not in _LANGUAGES:
        problems.append(f"language_codes is {str(family)[:60]!r}; known are {', '.join(_LANGUAGES)}")
    codes = _LANGUAGES.get(str(family), "").split()
    languages = {code: size + place for place, code in enumerate(codes)}
    problems += [
        f"the special token __{code}__ has the id {config.special_tokens[f'__{code}__']}, expected {index}"
        for code, index in languages.items()
        if config.special_tokens.get(f"__{code}__", index) != index
    ]
    if problems:
        raise ValueError("; ".join(problems))
    added = ((_ADDED.fullmatch(text), index) for text, index in config.special_tokens.items())
    languages |= {found["code"]: index for found, index in added if found and found["code"] not in languages}
    return M2M100Files(
        size=max(*languages.values(), *config.special_tokens.values()) + 1,
        pad_id=config.named_ids["pad_token"],
        eos_id=config.named_ids["eos_token"],
        unk_id=config.named_ids["unk_token"],
        languages=languages,
        special_tokens=config.special_tokens,
        cleans_up_spaces=config.cleans_up_spaces,
    )
