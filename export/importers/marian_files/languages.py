"""The languages of a folder of Marian's: from options, Mozilla's metadata, names of files, and OPUS-MT's card."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export.importers.language_choice import prefixed_pairs
from export.importers.model_card import CARD_NAME, start_of
from export.importers.options import ImportOptions
from service.bundle.manifest_parts import LanguagePair
from service.text.languages import is_well_formed

_MOST_CARD_CHARACTERS = 2**20
METADATA_NAME = "metadata.json"
# Of names such as model.en-de.spm and model.ende.intgemm.alphas.bin, but not of model.best.npz.
_PAIR = re.compile(r"\.(?:([a-z]{2,3})-([a-z]{2,3})|(?!best|last|base|tiny)([a-z]{2})([a-z]{2}))\.")
_IN_CARD = r"^[*-] {side} language\(s\): *(\S.*?) *$"


def read_languages(
    paths: tuple[Path, ...],
    metadata: Mapping[str, Any],
    target_prefixes: Mapping[str, int],
    options: ImportOptions,
    problems: list[str],
) -> tuple[LanguagePair, ...]:
    """Return one pair, or one per target of a model with several; none, and a line in `problems`, if any is unknown.

    `paths` are those of the model and of its vocabularies.
    """
    found = next(filter(None, (_PAIR.search(path.name) for path in paths)), None)
    named = tuple(filter(None, found.groups())) if found else ("", "")
    codes = []
    for side, given, from_name in zip(
        ("source", "target"), (options.source_language, options.target_language), named, strict=True
    ):
        if side == "target" and target_prefixes:
            continue
        code = given or metadata.get(f"{side}Language") or from_name or _of_card(paths[0].parent, side)
        if not isinstance(code, str) or not is_well_formed(code):
            places = f"neither {METADATA_NAME} nor {CARD_NAME} nor names of files tell"
            problems.append(f"{places} the {side} language; give --{side}-language")
        else:
            codes.append(code)
    if target_prefixes:
        return prefixed_pairs(codes[0], target_prefixes, options.target_language, problems) if codes else ()
    return (LanguagePair(codes[0], codes[1]),) if len(codes) == 2 else ()


def _of_card(directory: Path, side: str) -> str | None:
    """Return the language of one side in OPUS-MT's card, which may describe several models, if it is one."""
    card = start_of(directory / CARD_NAME, _MOST_CARD_CHARACTERS)
    found = set(re.findall(_IN_CARD.format(side=side), card, re.MULTILINE))
    return found.pop() if len(found) == 1 else None
