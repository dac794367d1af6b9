"""Recognises state dicts that are not a whole model: a part saved separately, or a model inside another module."""

import re
from collections.abc import Iterable

from export.importers.state_dict.attention import FORMS

_LAYER = r"(?:self_|cross_|)attention\."
_PARTS = {  # the prefixes of attention's weights
    "": "attention",
    _LAYER: "one layer",
    rf"\d+\.{_LAYER}": "a list of layers",
    rf"encoder_list\.\d+\.{_LAYER}": "an encoder",
    rf"decoder_list\.\d+\.{_LAYER}": "a decoder",
}
_INSIDE = re.compile(rf"(.+\.)(?:encoder\.encoder_list|decoder\.decoder_list)\.\d+\.{_LAYER}")


def describe(names: Iterable[str]) -> str | None:
    """Return what it is and what to save instead; `None` if its names are not conclusive."""
    marks = tuple(dict.fromkeys(form.mark for form in FORMS))
    for name in names:
        before = next((name.removesuffix(mark) for mark in marks if f".{name}".endswith(f".{mark}")), None)
        if before is None:
            continue
        if inside := _INSIDE.fullmatch(before):
            return f"its names begin with {inside[1]!r}; save the state_dict() of what that is in the module around it"
        for pattern, part in _PARTS.items():
            if re.fullmatch(pattern, before):
                return f"it holds {part} by itself ({name}), no Transformer; save the state_dict() of the whole model"
    return None
