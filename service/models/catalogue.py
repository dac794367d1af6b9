"""Which loaded model answers a call: by its name, or by the language pair alone."""

from collections.abc import Iterable

from service.bundle.manifest import LanguagePair
from service.errors import InvalidRequest, NotFound
from service.models.loaded_model import LoadedModel
from service.text.languages import is_well_formed, match_language, same_language


class Catalogue:
    """The models that are served; empty until they are loaded."""

    def __init__(self, models: Iterable[LoadedModel] = ()) -> None:
        self._models = {model.name: model for model in sorted(models, key=lambda model: model.name)}

    def models(self) -> list[LoadedModel]:
        """All models, in order of names."""
        return list(self._models.values())

    def resolve(self, name: str, source: str, target: str) -> tuple[LoadedModel, LanguagePair]:
        """Find the model and its language pair; an empty `name` takes the first model that translates the pair.

        Raises:
            InvalidRequest: a language code is missing or malformed.
            NotFound: no such model, or none that translates this pair.
        """
        _check_code("source_language_code", source)
        _check_code("target_language_code", target)
        candidates = [self._by_name(name)] if name else self.models()
        for model in candidates:
            pair = model.pairs.find(source, target)
            if pair is not None:
                return model, pair
        raise NotFound(_unknown_pair(name, source, target, candidates))

    def _by_name(self, name: str) -> LoadedModel:
        model = self._models.get(name)
        if model is None:
            raise NotFound(f"model {_shown(name)} is not served here; served are {_listed(self._models)}.")
        return model


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
