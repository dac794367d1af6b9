"""Special tokens that a text spells: "</s>" in a text is that token, as it is for transformers' tokenizers."""

import re
from collections.abc import Mapping


class SpecialTokens:
    """Finds special tokens in texts: the leftmost first, and of those that start there the longest."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        """`ids` maps each token's text, which is not empty, to its id; there is at least one."""
        longest_first = sorted(ids, key=len, reverse=True)
        self._ids = dict(ids)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def split(self, text: str) -> tuple[list[str], list[int]]:
        """Cut a text at its n special tokens: the n + 1 texts around them, which may be empty, and the tokens' ids."""
        parts = self._pattern.split(text)
        return parts[::2], [self._ids[token] for token in parts[1::2]]
