"""Spaces that a tokenizer left before punctuation."""

import re

# In this order, as `clean_up_tokenization` of transformers 5 (tokenization_utils_base.py) has it.
_REPLACEMENTS = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)
# Words after which, or after whose beginnings, a space before them may go.
_UNSETTLED = re.compile(r"(?: (?:n'?|'[vr]?)?)*\Z")


def clean_up_spaces(text: str) -> str:
    """The text as transformers' `clean_up_tokenization_spaces` makes it, which some checkpoints ask for.

    Nothing but spaces goes.
    """
    for spaced, clean in _REPLACEMENTS:
        text = text.replace(spaced, clean)
    return text


def settled(text: str) -> str:
    """The part of a text that comes out of `clean_up_spaces` the same whatever follows the text."""
    return text[: _UNSETTLED.search(text).start()]  # type: ignore[union-attr]  # it matches the empty end, too
