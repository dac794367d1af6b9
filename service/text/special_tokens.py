"""Special tokens spelled in a text: "</s>" in a text is that token, as for transformers' tokenizers."""

import itertools
import re
from collections.abc import Iterable, Mapping

from service.text.token_spans import TokenSpan


class SpecialTokens:
    """Finds special tokens in texts: the leftmost first, and of those at the same position the longest.

    transformers does the same, unless a special token is within another one.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        """Take `ids`, which maps each token's text, which is not empty, to its id; there is at least one."""
        self._ids = dict(ids)
        self._pattern = re.compile(f"({_any_of(ids)})")

    def split(self, text: str) -> tuple[list[str], list[int]]:
        """Split a text at its n special tokens: return the n + 1 texts around them, which may be empty, and the tokens'
        ids.
        """
        parts = self._pattern.split(text)
        return parts[::2], [self._ids[token] for token in parts[1::2]]

    def spans(self, text: str) -> list[TokenSpan]:
        """Return the positions of the special tokens that `split` finds."""
        return [found.span() for found in self._pattern.finditer(text)]


def _any_of(words: Iterable[str]) -> str:
    """Return a regular expression for the longest of the words, in which common prefixes are shared.

    An alternative for each of a hundred languages' tokens takes ten times as long on a text of underscores.
    """
    alternatives = []
    for first, group in itertools.groupby(sorted(words, reverse=True), key=lambda word: word[:1]):
        rests = [word[1:] for word in group]
        alternatives.append(re.escape(first) + (_any_of(rests) if len(rests) > 1 else re.escape(rests[0])))
    return f"(?:{'|'.join(alternatives)})"
