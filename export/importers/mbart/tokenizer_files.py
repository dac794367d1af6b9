"""What the tokenizer files of mBART, BART and PLBart say, and which class reads a folder's."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from export.importers.huggingface.tokenizer_config import CONFIG_NAME, class_of, read_optional
from export.importers.imported import TokenizerFile
from service.bundle.manifest_parts import TokenizerSpec

Place = Literal["before", "after", "nowhere"]


@dataclass(frozen=True, slots=True)
class BartFiles:
    """The content of the files.

    `size` is the highest id plus one. `first_ids` precede every source. `languages` maps each language's code to the id
    of its token, which a source has before the text or after its end: `place`. `source` is the language that a folder
    was saved for, empty if it does not say. `written` are the bundle's files.
    """

    size: int
    template: TokenizerSpec  # without the token that starts a translation
    written: Mapping[str, TokenizerFile]
    place: Place = "nowhere"
    languages: dict[str, int] = field(default_factory=dict)
    first_ids: tuple[int, ...] = ()
    source: str = ""

    @property
    def pad_id(self) -> int:
        return self.template.pad_id

    @property
    def eos_id(self) -> int:
        return self.template.eos_id

    @property
    def unk_id(self) -> int:
        return self.template.unk_id

    def spec(self, decoder_start_id: int) -> TokenizerSpec:
        return dataclasses.replace(self.template, decoder_start_id=decoder_start_id)


Reader = Callable[[Path, Mapping[str, Any]], BartFiles]


def read_tokenizer(directory: Path, readers: Mapping[str, Reader], default: str) -> BartFiles:
    """Read and check a folder's files with the reader of its class, `default` if it names none."""
    problems: list[str] = []
    document = read_optional(directory / CONFIG_NAME, problems)
    name = class_of(directory, document, (default, *readers), problems)
    if document.get("extra_special_tokens") and not isinstance(document["extra_special_tokens"], list):
        problems.append(f"{CONFIG_NAME}: its additional special tokens are not a list")
    if problems:
        raise ValueError("; ".join(problems))
    return readers[name](directory, document)


def short_codes(tokens: Iterable[str]) -> dict[str, str]:
    """Map codes of languages to their tokens: "en" to "en_XX"; the token itself where two are of one language."""
    given = sorted(tokens)
    languages = [token.split("_")[0] for token in given]
    return {
        language if languages.count(language) == 1 else token: token
        for language, token in zip(languages, given, strict=True)
    }
