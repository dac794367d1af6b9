"""Special tokens in a checkpoint's `tokenizer_config.json` and its older companions.

As in transformers 5's Python (`from_pretrained` in tokenization_utils_base.py, `PythonBackend`): for Marian and M2M100.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.importers.json_file import read_json
from service.bundle.manifest_parts import TokenizerSpec

CONFIG_NAME = "tokenizer_config.json"
_MODEL_CONFIG_NAME = "config.json"
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_OLD_NAMES_FILE = "special_tokens_map.json"
_OLD_ADDED_FILE = "added_tokens.json"
_FAST_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class TokenizerConfig:
    """The settings that concern tokens.

    `special_tokens` maps the text of each to its id, `named_ids` names such as "eos_token" to ids. `document` is the
    content of `tokenizer_config.json`, an empty object if it is missing.
    """

    special_tokens: dict[str, int]
    named_ids: dict[str, int]
    cleans_up_spaces: bool
    document: Mapping[str, Any]

    def spec(self, kind: str, file: str, **more: Any) -> TokenizerSpec:
        """Return the manifest's entry, with `more` of its fields; the model says later what translations start from."""
        return TokenizerSpec(
            kind=kind,
            file=file,
            pad_id=self.named_ids["pad_token"],
            eos_id=self.named_ids["eos_token"],
            unk_id=self.named_ids["unk_token"],
            decoder_start_id=self.named_ids["eos_token"],
            special_tokens=self.special_tokens,
            cleans_up_spaces=self.cleans_up_spaces,
            **more,
        )

    def differing_ids(self, target: Mapping[str, int], target_name: str, name: str) -> list[str]:
        """Return a problem for each special token that has another id in a target's vocabulary.
        transformers knows only the source's ids, and so mishandles different ones on the target's side."""
        return [
            f"{target_name}: the id of {text!r} is {target.get(text)}, in {name} it is {index}"
            for text, index in self.special_tokens.items()
            if target and target.get(text) != index
        ]


def read_tokenizer_config(
    directory: Path, vocabulary: Mapping[str, int], defaults: Mapping[str, str], problems: list[str]
) -> TokenizerConfig:
    """Read the settings of a checkpoint whose pieces have the ids of `vocabulary`; add every problem to `problems`.

    `defaults` are the class' tokens; padding, end and unknown must be in the vocabulary, unless it is empty.
    """
    found = len(problems)
    document = read_optional(directory / CONFIG_NAME, problems)
    settings = dict(document)
    if "added_tokens_decoder" in document:
        placed = _placed(document["added_tokens_decoder"], problems)
    else:  # as written by transformers up to 4.33
        settings |= read_optional(directory / _OLD_NAMES_FILE, problems)
        placed = read_optional(directory / _OLD_ADDED_FILE, problems)
        if (directory / _FAST_FILE).exists():
            problems.append(f"{_FAST_FILE} is not supported beside a vocabulary; remove it")
    texts = {name: token_text(settings.get(name, defaults.get(name)), problems) for name in NAMED_TOKENS}
    extra = document.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    if not isinstance(extra, list):
        problems.append(f"{CONFIG_NAME}: its additional special tokens are not a list")
        extra = []
    special = dict.fromkeys([*texts.values(), *(token_text(token, problems) for token in extra)])
    special.pop("", None)
    problems += [f"{CONFIG_NAME}: {problem}" for problem in _unsupported(settings)]
    for text, index in placed.items():
        if text not in special:
            problems.append(f"the added token {text!r} is not special, which is not supported")
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            problems.append(f"the id of the added token {text!r} is {index!r}")
    needed = {name: texts[name] for name in ("pad_token", "eos_token", "unk_token") if vocabulary}
    problems += [f"the vocabulary has no {name} ({text!r})" for name, text in needed.items() if text not in vocabulary]
    ids = {} if len(problems) > found else _number(special, placed, vocabulary, problems)
    return TokenizerConfig(
        special_tokens=ids,
        named_ids={name: ids[text] for name, text in texts.items() if text in ids},
        cleans_up_spaces=settings.get("clean_up_tokenization_spaces") is True,
        document=document,
    )


def class_of(directory: Path, document: Mapping[str, Any], known: Sequence[str], problems: list[str]) -> str:
    """Return which of the `known` classes of tokenizers a folder names; the first if it names none.

    Any other goes to `problems`, as its ids may differ. `document` is `tokenizer_config.json`; else `config.json`
    counts.
    """
    places = ((CONFIG_NAME, document), (_MODEL_CONFIG_NAME, read_optional(directory / _MODEL_CONFIG_NAME, [])))
    file_name, given = next(
        ((name, each["tokenizer_class"]) for name, each in places if each.get("tokenizer_class")), ("", known[0])
    )
    name = given.removesuffix("Fast") if isinstance(given, str) else ""
    if name not in known:
        problems.append(
            f"{file_name}: tokenizer_class is {str(given)[:60]!r}; supported: {' or '.join(dict.fromkeys(known))} "
            "with such files, as others may read them in another way"
        )
    if document.get("auto_map"):
        problems.append(f"{CONFIG_NAME}: auto_map names a tokenizer of its own code, which is not run")
    return name if name in known else known[0]


def read_optional(path: Path, problems: list[str]) -> dict[str, Any]:
    """Return the file's object; an empty one if the file is missing or unusable, which is added to `problems`."""
    try:
        return read_json(path) if path.exists() else {}
    except ValueError as error:
        problems.append(f"{path.name}: {error}")
        return {}


def token_text(token: Any, problems: list[str]) -> str:
    """Return a token's text, which files hold plain or with settings; empty if there is none or it is unusable."""
    if token is None or isinstance(token, str):
        return token or ""
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        problems.append(f"expected a special token, not {str(token)[:60]!r}")
        return ""
    problems += [
        f"{setting} of the special token {token['content']!r} is not supported"
        for setting in ("lstrip", "rstrip", "single_word")
        if token.get(setting)
    ]
    return str(token["content"])


def _placed(entries: Any, problems: list[str]) -> dict[str, Any]:
    if not isinstance(entries, dict) or not all(key.isascii() and key.isdigit() for key in entries):
        problems.append(f"{CONFIG_NAME}: added_tokens_decoder is not an object of ids and tokens")
        return {}
    return {token_text(token, problems): int(index) for index, token in entries.items()}


def _unsupported(settings: Mapping[str, Any]) -> list[str]:
    strange = [
        name
        for name, value in settings.items()
        if name.endswith("_token") and isinstance(value, str) and name not in NAMED_TOKENS
    ]
    given = [name for name in ("split_special_tokens", "sp_model_kwargs") if settings.get(name)]
    return [f"{name} is not supported" for name in (*given, *strange)]


def _number(
    texts: Iterable[str], placed: Mapping[str, int], vocabulary: Mapping[str, int], problems: list[str]
) -> dict[str, int]:
    """Return the ids of the special tokens: as placed, as in the vocabulary, or following both."""
    ids: dict[str, int] = {}
    following = len(vocabulary.keys() | placed.keys())
    for text in texts:
        ids[text] = placed.get(text, vocabulary.get(text, following))
        following += ids[text] == following
    owners = {index: text for text, index in vocabulary.items()}
    for text, index in ids.items():
        if vocabulary.get(text, index) != index or owners.setdefault(index, text) != text:
            problems.append(f"the special token {text!r} has the id {index}, which contradicts the vocabulary")
    return ids
