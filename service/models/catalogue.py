"""Selects the loaded models that answer a call: by name and version, or by the language pair alone."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from service.bundle.manifest_parts import LanguagePair
from service.domain.errors import InvalidRequest, NotFound, PairNotFound, Path, Public, listed
from service.domain.grants import EVERYTHING, Grants
from service.models.loaded_model import MAX_RESOLVED, LoadedModel
from service.models.repository import version_number
from service.text.languages import canonical, in_message, is_same, is_well_formed, language_of

T = TypeVar("T")


class Leg(NamedTuple):
    """A model, and the language pair for which it is used."""

    model: LoadedModel
    pair: LanguagePair


@dataclass(frozen=True, slots=True)
class Route:
    """The way from a language to another: one model, or two by a pivot language.

    Without legs, texts stay. `writer` is the last leg's model, else one that knows the language. The pivot's code, BCP
    47, is empty with one leg.
    """

    writer: LoadedModel
    legs: tuple[Leg, ...]
    pivot_language_code: str = ""


class RouteUse:
    """A call's use of a route in a `with` block: its models stay loaded, even if replaced meanwhile, and count it."""

    __slots__ = ("_began_seconds", "_num_texts", "_route")

    def __init__(self, route: Route, num_texts: int) -> None:
        self._route = route
        self._num_texts = num_texts

    def __enter__(self) -> Route:
        self._began_seconds = time.monotonic()
        for model, _ in self._route.legs:
            model.leases.num_held += 1
        return self._route

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        seconds = time.monotonic() - self._began_seconds
        for model, _ in self._route.legs:
            model.statistics.called(self._num_texts, seconds, succeeded=error is None)
            model.leases.give_back()


class PivotedPair(NamedTuple):
    """A pair that no model has, the pivot language, and the second of the two models. Codes are BCP 47."""

    source: str
    target: str
    pivot: str
    writer: LoadedModel


class Catalogue:
    """The models that are served, each in one or more versions; immutable. Empty until models are loaded."""

    def __init__(
        self,
        models: Iterable[LoadedModel] = (),
        pivot_languages: Sequence[str] = (),
        grants: Grants = EVERYTHING,
    ) -> None:
        """Translate pairs without a model by a pivot language, the first that two share; errors name only `grants`."""
        self._grants = grants
        self.where = Public(f"for key {grants.key}" if grants.models is not None else "here")
        highest_first = sorted(models, key=lambda model: version_number(model.version), reverse=True)
        self._models: dict[str, dict[str, LoadedModel]] = {name: {} for name in sorted({m.name for m in highest_first})}
        for model in highest_first:
            self._models[model.name][model.version] = model
        # All models, ordered by name, and for each name the highest version first.
        self.models = tuple([model for versions in self._models.values() for model in versions.values()])
        self._pivots = tuple(map(canonical, pivot_languages))
        self._pivoted: list[PivotedPair] | None = None
        self._languages: tuple[str, ...] | None = None
        self._resolved: dict[tuple[str, ...], Route] = {}
        self._sources: dict[tuple[str, ...], list[str]] = {}
        self._parts: dict[Grants, Catalogue] = {}

    def part(self, grants: Grants) -> "Catalogue":
        if grants.models is None:
            return self
        found = self._parts.get(grants)
        if found is None:
            if len(self._parts) == MAX_RESOLVED:  # of keys that have changed since the models were loaded
                self._parts.clear()
            allowed = [model for model in self.models if grants.allows_model(model.name)]
            found = self._parts[grants] = Catalogue(allowed, self._pivots, grants)
        return found

    def targets(self) -> dict[str, set[str]]:
        """Return the targets of each source language: those of one model, or of two with a pivot language."""
        targets = self._direct_targets()
        for pair in self.pivoted():
            targets[pair.source].add(pair.target)
        return targets

    def languages(self) -> tuple[str, ...]:
        """Return all languages that are translated from or into, as sorted BCP 47 codes."""
        if self._languages is None:
            targets = self._direct_targets()
            self._languages = tuple(sorted({*targets, *(code for into in targets.values() for code in into)}))
        return self._languages

    def pivoted(self) -> list[PivotedPair]:
        """Return the pairs that are translated by way of a pivot language, sorted."""
        if self._pivoted is None:
            self._pivoted = sorted(self._find_pivoted(), key=lambda pair: pair[:3])
        return self._pivoted

    def resolve(self, name: str, version: str, source: str, target: str) -> Route:
        """Find the models and their language pairs.

        An empty `name` chooses the model whose pair is nearest to these codes, the first of equally near ones; an empty
        `version` the highest one. If no model has the pair, two translate it by way of a pivot language; of a named
        model, two of its own pairs do. Between a language and itself, or another region of it, the route may have no
        legs.
        """
        return _remembered(self._resolved, (name, version, source, target), self._resolve)

    def _resolve(self, name: str, version: str, source: str, target: str) -> Route:
        _check_code("source_language_code", source)
        _check_code("target_language_code", target)
        candidates = self._candidates(name, version)
        if direct := _leg(candidates, source, target):
            return Route(direct.model, (direct,))
        if language_of(source) != language_of(target):
            for pivot in self._pivots:
                first, second = _leg(candidates, source, pivot), _leg(candidates, pivot, target)
                if first and second:
                    return Route(second.model, (first, second), pivot)
        if is_same(source, target) and (knowing := [each for each in candidates if each.pairs.knows(target)]):
            return Route(knowing[0], ())
        raise _unknown_pair(self._who(name), source, target, candidates)

    def sources(self, name: str, version: str, target: str) -> list[str]:
        """Return the languages translated into `target`, as sorted BCP 47 codes; `name` as for `resolve`."""
        return _remembered(self._sources, (name, version, target), self._find_sources)

    def _find_sources(self, name: str, version: str, target: str) -> list[str]:
        _check_code("target_language_code", target)
        candidates = self._candidates(name, version)
        into = [target, *(pivot for pivot in self._pivots if _leg(candidates, pivot, target))]
        direct, *pivoted = ({source for model in candidates for source in model.pairs.sources(code)} for code in into)
        others = {source for each in pivoted for source in each if language_of(source) != language_of(target)}
        if not direct | others:
            raise _unknown_target(self._who(name), target, candidates)
        return sorted(direct | others)

    def _direct_targets(self) -> dict[str, set[str]]:
        targets: dict[str, set[str]] = {}
        for model in self.models:
            for source in {source for source, _ in model.pairs.listed} | set(model.pairs.any_to_any):
                targets.setdefault(source, set()).update(model.pairs.targets(source))
        return targets

    def _find_pivoted(self) -> Iterator[PivotedPair]:
        highest = self._candidates("", "")
        direct = {(source, target) for source, targets in self._direct_targets().items() for target in targets}
        near = {(language_of(source), language_of(target)) for source, target in direct}
        found: set[tuple[str, str]] = set()
        for pivot in self._pivots:
            sources = {source for model in highest for source in model.pairs.sources(pivot)}
            writers: dict[str, list[LoadedModel]] = {}
            for model in highest:
                for target in model.pairs.targets(pivot):
                    writers.setdefault(target, []).append(model)
            for target, models in writers.items():
                second, language = _leg(models, pivot, target), language_of(target)
                for source in sources:
                    own = language_of(source)
                    if second is None or own == language or (source, target) in found:
                        continue
                    if (own, language) not in near or _leg(highest, source, target) is None:
                        found.add((source, target))
                        yield PivotedPair(source, target, pivot, second.model)

    def _candidates(self, name: str, version: str) -> list[LoadedModel]:
        if version and not name:
            raise InvalidRequest(
                "{path} is {version} and {model} is empty",
                Path("model_version"),
                version=version,
                model=Path("model"),
                advice="name the model too",
            )
        return [self.find(name, version)] if name else [_highest(each) for each in self._models.values()]

    def find(self, name: str, version: str) -> LoadedModel:
        """Return the model of this name; its highest version if `version` is empty."""
        versions = self._models.get(name)
        if versions is None:
            self._grants.check_model(name)
            raise NotFound(
                "model {name} is not served here; served: {served}",
                "model",
                name,
                name=name,
                served=Public(listed(self._models)),
            )
        model = versions.get(version) if version else _highest(versions)
        if model is None:
            raise NotFound(
                "version {version} of model {name} is not served here; served: {served}"
                if any(versions)
                else "model {name} has no versions here, and {version} was asked for; leave it out",
                "model version",
                f"{name}/{version}",
                version=version,
                name=Public(repr(name)),
                served=Public(listed(versions)),
            )
        return model

    def _who(self, name: str) -> Public:
        return Public(f"model {name!r} does not translate" if name else f"no model {self.where} translates")


def _remembered(known: dict[tuple[str, ...], T], key: tuple[str, ...], find: Callable[..., T]) -> T:
    """Return what is known for a key, or find it; callers may send any number of keys."""
    found = known.get(key)
    if found is None:
        found = find(*key)
        if len(known) < MAX_RESOLVED:
            known[key] = found
    return found


def _leg(models: Sequence[LoadedModel], source: str, target: str) -> Leg | None:
    found = [(model, match) for model in models if (match := model.pairs.find(source, target)) is not None]
    if not found:
        return None
    model, match = min(found, key=lambda each: each[1].distance)
    return Leg(model, match.pair)


def _highest(versions: Mapping[str, LoadedModel]) -> LoadedModel:
    return next(iter(versions.values()))


def _check_code(field: str, code: str) -> None:
    if not code:
        raise InvalidRequest("{path} is empty", Path(field), advice="give a BCP 47 code such as 'en'")
    if not is_well_formed(code):
        expected = "expected a BCP 47 code such as 'en' or 'pt-BR'"
        raise InvalidRequest("{path} is {code}", Path(field), code=code, advice=expected)


def _unknown_pair(who: Public, source: str, target: str, models: list[LoadedModel]) -> PairNotFound:
    path = Path("source_language_code")
    nearest = _nearest(model.pairs.nearest_source(source) for model in models)
    served = "served: {directions}"
    if targets := sorted({code for model in models for code in model.pairs.targets(source)}):
        path = Path("target_language_code")
        nearest = _nearest(model.pairs.nearest_target(target) for model in models)
        served = "targets from {source}: {targets}"
    return PairNotFound(
        f"{{who}} from {{source}} into {{target}}; {{nearest}}{served}",
        path,
        who=who,
        source=in_message(source),
        target=in_message(target),
        nearest=nearest,
        targets=Public(listed(targets)),
        directions=Public(_directions(models)),
    )


def _unknown_target(who: Public, target: str, models: list[LoadedModel]) -> PairNotFound:
    return PairNotFound(
        "{who} into {target}; {nearest}served: {served}",
        Path("target_language_code"),
        who=who,
        target=in_message(target),
        nearest=_nearest(model.pairs.nearest_target(target) for model in models),
        served=Public(_directions(models)),
    )


def _nearest(codes: Iterable[str | None]) -> Public:
    code = next(filter(None, codes), None)
    return Public("" if code is None else f"the nearest code is {code!r}; ")


def _directions(models: list[LoadedModel]) -> str:
    directions = sorted({f"{source} to {target}" for model in models for source, target in model.pairs.listed})
    among = sorted({f"among {listed(model.pairs.any_to_any)}" for model in models if model.pairs.any_to_any})
    return listed([*directions, *among])
