"""Which loaded model answers a call: by its name and version, or by the language pair alone."""

from collections.abc import Iterable, Mapping

from service.bundle.manifest import LanguagePair
from service.errors import InvalidRequest, NotFound
from service.models.loaded_model import LoadedModel
from service.models.repository import version_number
from service.text.languages import is_well_formed, match_language, same_language


class Catalogue:
    """The models that are served, each in one or more versions; never changes. Empty until they are loaded."""

    def __init__(self, models: Iterable[LoadedModel] = ()) -> None:
        highest_first = sorted(models, key=lambda model: version_number(model.version), reverse=True)
        self._models: dict[str, dict[str, LoadedModel]] = {name: {} for name in sorted({m.name for m in highest_first})}
        for model in highest_first:
            self._models[model.name][model.version] = model

    def models(self) -> list[LoadedModel]:
        """All models, in order of names, and of each name the highest version first."""
        return [model for versions in self._models.values() for model in versions.values()]

    def resolve(self, name: str, version: str, source: str, target: str) -> tuple[LoadedModel, LanguagePair]:
        """Find the model and its language pair.

        An empty `name` takes the first model that translates the pair, an empty `version` the highest that is served.

        Raises:
            InvalidRequest: a language code is missing or malformed, or a version is given without a name.
            NotFound: no such model or version, or none that translates this pair.
        """
        _check_code("source_language_code", source)
        _check_code("target_language_code", target)
        if version and not name:
            raise InvalidRequest(
                f"model_version is {_shown(version)} and model is empty; name the model too.", "model_version"
            )
        candidates = [self.find(name, version)] if name else [_highest(each) for each in self._models.values()]
        for model in candidates:
            pair = model.pairs.find(source, target)
            if pair is not None:
                return model, pair
        raise NotFound(_unknown_pair(name, source, target, candidates))

    def find(self, name: str, version: str) -> LoadedModel:
        """The model of this name; its highest version if `version` is empty.

        Raises:
            NotFound: there is no such model or version.
        """
        versions = self._models.get(name)
        if versions is None:
            raise NotFound(f"model {_shown(name)} is not served here; served are {_listed(self._models)}.")
        model = versions.get(version) if version else _highest(versions)
        if model is None:
            raise NotFound(
                f"version {_shown(version)} of model {name!r} is not served here; served are {_listed(versions)}."
                if any(versions)
                else f"model {name!r} has no versions here, and {_shown(version)} was asked for; leave it out."
            )
        return model


def _highest(versions: Mapping[str, LoadedModel]) -> LoadedModel:
    return next(iter(versions.values()))


def _check_code(field: str, code: str) -> None:
    if not code:
        raise InvalidRequest(f"{field} is empty; give a BCP 47 code such as 'en'.", field)
    if not is_well_formed(code):
        raise InvalidRequest(f"{field} is {_shown(code)}; expected a BCP 47 code such as 'en' or 'pt-BR'.", field)


def _unknown_pair(name: str, source: str, target: str, models: list[LoadedModel]) -> str:
    pairs = [pair for model in models for pair in model.manifest.pairs()]
    who = f"model {name!r} does not translate" if name else "no model here translates"
    targets = sorted({p.target_language_code for p in pairs if same_language(p.source_language_code, source)})
    if match_language(source, (pair.source_language_code for pair in pairs)) is not None:
        return f"{who} from {source!r} into {target!r}; from {source!r} it can be {_listed(targets)}."
    served = sorted({f"{pair.source_language_code} to {pair.target_language_code}" for pair in pairs})
    return f"{who} from {source!r} into {target!r}; served are {_listed(served)}."


def _listed(names: Iterable[str], most: int = 20) -> str:
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more


def _shown(value: str) -> str:
    return repr(value if len(value) <= 60 else f"{value[:57]}...")
