"""Removal of the spaces that a tokenizer leaves before punctuation."""

import re

# In the order of transformers 5's `clean_up_tokenization` (tokenization_utils_base.py).
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
# Words such that a space before them, or before a prefix of them, may be removed.
_UNSETTLED = re.compile(r"(?: (?:n'?|'[vr]?)?)*\Z")


def clean_up_spaces(text: str) -> str:
    """Return the text as transformers' `clean_up_tokenization_spaces` does, which some checkpoints require.

    Only spaces are removed.
    """
    for spaced, clean in _REPLACEMENTS:
        text = text.replace(spaced, clean)
    return text


def settled(text: str) -> str:
    """Return the prefix of a text that `clean_up_spaces` leaves the same whatever follows the text."""
    return text[: _UNSETTLED.search(text).start()]  # type: ignore[union-attr]  # it matches the empty end, too
