"""Which of a model's language pairs a caller's codes mean."""

from service.bundle.manifest import LanguagePair, Manifest
from service.text.languages import folded


class LanguagePairs:
    """The pairs of one manifest by their codes; a model of 200 languages has 40,000."""

    def __init__(self, manifest: Manifest) -> None:
        self._pairs: dict[tuple[str, str], LanguagePair] = {}
        for pair in manifest.pairs():
            self._pairs.setdefault((folded(pair.source_language_code), folded(pair.target_language_code)), pair)

    def find(self, source: str, target: str) -> LanguagePair | None:
        """The first pair with these codes, whatever their case and whether `-` or `_` separates subtags."""
        return self._pairs.get((folded(source), folded(target)))
