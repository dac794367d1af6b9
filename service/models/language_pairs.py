"""Maps a caller's language codes to a model's language pairs, and lists its languages for callers."""

from dataclasses import dataclass

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Language, LanguagePair
from service.text.languages import ServedLanguages, folded


@dataclass(frozen=True, slots=True)
class FoundPair:
    """A language pair of a model, and the distance of its codes from the requested ones; 0 means the same codes."""

    pair: LanguagePair
    distance: int


class LanguagePairs:
    """The language pairs of one manifest; a model of 200 languages has 40,000, which are never enumerated here.

    Codes passed in are callers', in any spelling; codes returned are BCP 47, except those in a `LanguagePair`.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._listed: dict[tuple[str, str], LanguagePair] = {}
        for pair in manifest.languages:
            self._listed.setdefault((folded(pair.source_language_code), folded(pair.target_language_code)), pair)
        self._any_to_any: dict[str, Language] = {}
        for language in manifest.any_to_any:
            self._any_to_any.setdefault(folded(language.code), language)
        among = [language.code for language in manifest.any_to_any]
        sources = [*(pair.source_language_code for pair in manifest.languages), *among]
        targets = [*(pair.target_language_code for pair in manifest.languages), *among]
        self._sources, self._targets = ServedLanguages(sources), ServedLanguages(targets)
        spellings = ServedLanguages([*sources, *targets]).spellings()
        self._spellings = {folded(code): spelling for code, spelling in spellings.items()}

    @property
    def listed(self) -> list[tuple[str, str]]:
        return [(self._spellings[source], self._spellings[target]) for source, target in self._listed]

    @property
    def any_to_any(self) -> list[str]:
        return [self._spellings[code] for code in self._any_to_any]

    def find(self, source: str, target: str) -> FoundPair | None:
        """Return the pair nearest to these codes; of equally near ones the first in order of codes."""
        targets = self._targets.find(target)
        found = (
            FoundPair(pair, from_.distance + into.distance)
            for from_ in self._sources.find(source)
            for into in targets
            if (pair := self._pair(folded(from_.code), folded(into.code))) is not None
        )
        return min(found, key=lambda each: each.distance, default=None)

    def knows(self, code: str) -> bool:
        return bool(self._sources.find(code) or self._targets.find(code))

    def sources(self, target: str) -> list[str]:
        """Return the languages that can be translated into this one, sorted."""
        targets = [folded(into.code) for into in self._targets.find(target)]
        listed = [source for source, into in self._listed if into in targets]
        among = [source for source in self._any_to_any if set(targets) & (self._any_to_any.keys() - {source})]
        return sorted({self._spellings[code] for code in (*listed, *among)})

    def targets(self, source: str) -> list[str]:
        """Return the languages that this one can be translated into, sorted."""
        sources = [folded(from_.code) for from_ in self._sources.find(source)]
        listed = [target for from_, target in self._listed if from_ in sources]
        among = [target for target in self._any_to_any if set(sources) & (self._any_to_any.keys() - {target})]
        return sorted({self._spellings[code] for code in (*listed, *among)})

    def nearest_source(self, code: str) -> str | None:
        """Return the nearest language that can be translated, as a hint for a caller whose code can't be."""
        nearest = self._sources.nearest(code)
        return nearest and self._spellings[folded(nearest)]

    def nearest_target(self, code: str) -> str | None:
        """Return the nearest language that can be translated into, as a hint for a caller whose code can't be."""
        nearest = self._targets.nearest(code)
        return nearest and self._spellings[folded(nearest)]

    def _pair(self, source: str, target: str) -> LanguagePair | None:
        if (listed := self._listed.get((source, target))) is not None:
            return listed
        from_, into = self._any_to_any.get(source), self._any_to_any.get(target)
        if from_ is None or into is None or source == target:
            return None
        return from_.to(into)
