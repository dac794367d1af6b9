"""Spaces that a tokenizer left before punctuation."""

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


def clean_up_spaces(text: str) -> str:
    """The text as transformers' `clean_up_tokenization_spaces` makes it, which some checkpoints ask for.

    Nothing but spaces goes.
    """
    for spaced, clean in _REPLACEMENTS:
        text = text.replace(spaced, clean)
    return text
