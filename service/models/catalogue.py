"""Selects the loaded model that answers a call: by name and version, or by the language pair alone."""

from collections.abc import Iterable, Mapping

from service.bundle.manifest_parts import LanguagePair
from service.domain.errors import InvalidRequest, NotFound, PairNotFound, Path, Public, listed
from service.models.loaded_model import MAX_RESOLVED, LoadedModel
from service.models.repository import version_number
from service.text.languages import in_message, is_well_formed


class Catalogue:
    """The models that are served, each in one or more versions; immutable. Empty until models are loaded."""

    def __init__(self, models: Iterable[LoadedModel] = ()) -> None:
        highest_first = sorted(models, key=lambda model: version_number(model.version), reverse=True)
        self._models: dict[str, dict[str, LoadedModel]] = {name: {} for name in sorted({m.name for m in highest_first})}
        for model in highest_first:
            self._models[model.name][model.version] = model
        self._in_order = [model for versions in self._models.values() for model in versions.values()]
        self._resolved: dict[tuple[str, str, str, str], tuple[LoadedModel, LanguagePair]] = {}

    def models(self) -> list[LoadedModel]:
        """Return all models, ordered by name, and for each name the highest version first."""
        return self._in_order.copy()

    def resolve(self, name: str, version: str, source: str, target: str) -> tuple[LoadedModel, LanguagePair]:
        """Find the model and its language pair.

        With an empty `name`, the model whose pair is nearest to these codes is chosen, the first of equally near ones;
        with an empty `version`, the highest that is served.

        Raises:
            InvalidRequest: a language code is missing or malformed, or a version is given without a name.
            NotFound: there is no such model or version, or none that translates this pair.
        """
        key = (name, version, source, target)
        resolved = self._resolved.get(key)
        if resolved is None:
            resolved = self._resolve(*key)
            if len(self._resolved) < MAX_RESOLVED:
                self._resolved[key] = resolved
        return resolved

    def _resolve(self, name: str, version: str, source: str, target: str) -> tuple[LoadedModel, LanguagePair]:
        _check_code("source_language_code", source)
        _check_code("target_language_code", target)
        candidates = self._candidates(name, version)
        found = [(model, match) for model in candidates if (match := model.pairs.find(source, target)) is not None]
        if not found:
            raise _unknown_pair(name, source, target, candidates)
        model, match = min(found, key=lambda each: each[1].distance)
        return model, match.pair

    def sources(self, name: str, version: str, target: str) -> list[str]:
        """Return the languages that can be translated into `target`, as sorted BCP 47 codes; `name` as for `resolve`.

        Raises:
            InvalidRequest, NotFound: as for `resolve`.
        """
        _check_code("target_language_code", target)
        candidates = self._candidates(name, version)
        sources = sorted({source for model in candidates for source in model.pairs.sources(target)})
        if not sources:
            raise _unknown_target(name, target, candidates)
        return sources

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
        """Return the model of this name; its highest version if `version` is empty.

        Raises:
            NotFound: there is no such model or version.
        """
        versions = self._models.get(name)
        if versions is None:
            raise NotFound(
                "model {name} is not served here; served are {served}",
                "model",
                name,
                name=name,
                served=Public(listed(self._models)),
            )
        model = versions.get(version) if version else _highest(versions)
        if model is None:
            raise NotFound(
                "version {version} of model {name} is not served here; served are {served}"
                if any(versions)
                else "model {name} has no versions here, and {version} was asked for; leave it out",
                "model version",
                f"{name}/{version}",
                version=version,
                name=Public(repr(name)),
                served=Public(listed(versions)),
            )
        return model


def _highest(versions: Mapping[str, LoadedModel]) -> LoadedModel:
    return next(iter(versions.values()))


def _check_code(field: str, code: str) -> None:
    if not code:
        raise InvalidRequest("{path} is empty", Path(field), advice="give a BCP 47 code such as 'en'")
    if not is_well_formed(code):
        expected = "expected a BCP 47 code such as 'en' or 'pt-BR'"
        raise InvalidRequest("{path} is {code}", Path(field), code=code, advice=expected)


def _unknown_pair(name: str, source: str, target: str, models: list[LoadedModel]) -> PairNotFound:
    path = Path("source_language_code")
    nearest = _nearest(model.pairs.nearest_source(source) for model in models)
    served = "served are {directions}"
    if targets := sorted({code for model in models for code in model.pairs.targets(source)}):
        path = Path("target_language_code")
        nearest = _nearest(model.pairs.nearest_target(target) for model in models)
        served = "from {source} it can be {targets}"
    return PairNotFound(
        f"{{who}} from {{source}} into {{target}}; {{nearest}}{served}",
        path,
        who=_who(name),
        source=in_message(source),
        target=in_message(target),
        nearest=nearest,
        targets=Public(listed(targets)),
        directions=Public(_directions(models)),
    )


def _unknown_target(name: str, target: str, models: list[LoadedModel]) -> PairNotFound:
    return PairNotFound(
        "{who} into {target}; {nearest}served are {served}",
        Path("target_language_code"),
        who=_who(name),
        target=in_message(target),
        nearest=_nearest(model.pairs.nearest_target(target) for model in models),
        served=Public(_directions(models)),
    )


def _who(name: str) -> Public:
    return Public(f"model {name!r} does not translate" if name else "no model here translates")


def _nearest(codes: Iterable[str | None]) -> Public:
    code = next(filter(None, codes), None)
    return Public("" if code is None else f"the nearest code is {code!r}; ")


def _directions(models: list[LoadedModel]) -> str:
    directions = sorted({f"{source} to {target}" for model in models for source, target in model.pairs.listed})
    among = sorted({f"among {listed(model.pairs.any_to_any)}" for model in models if model.pairs.any_to_any})
    return listed([*directions, *among])
