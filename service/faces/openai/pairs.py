"""Language pairs as names of models: `en-de`, `dragoman/en-de`, and `NAME:en-de` for the pair of one of our models."""

from collections.abc import Iterator
from dataclasses import dataclass

from service.domain.errors import InvalidRequest, NotFound
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel

AUTO = "auto"  # as source: the text's language is detected
_OWNER = "dragoman/"
_MAX_PARTS = 16  # of a pair between hyphens, which codes have, too: zh-Hans-pt-BR
_MAX_PAIRS = 1000  # that are listed of a model that translates each language into each other one


@dataclass(frozen=True, slots=True)
class NamedPair:
    """What a caller means: `model` is empty unless one is chosen, `source` if it is to be detected."""

    model: str
    source: str
    target: str
    max_output_tokens: int


def pair_of(given: str, catalogue: Catalogue) -> NamedPair:
    """Return the pair that a name means; codes may be in any spelling, such as `eng_Latn-deu_Latn`.

    Raises:
        NotFound: no model has such a pair, nor have two by way of a pivot language, nor is it of a served language with
            itself.
    """
    name, _, pair = given.removeprefix(_OWNER).rpartition(":")
    found: list[tuple[int, NamedPair]] = []
    for each in catalogue.models():
        most = each.manifest.limits.max_output_tokens
        if name in ("", each.name):
            found += [
                (distance, NamedPair(name, "" if source == AUTO else source, target, most))
                for source, target in _splits(pair)
                if (distance := _distance(each, source, target)) is not None
            ]
    if not found:
        found = [(0, routed) for codes in _splits(pair) if (routed := _routed(catalogue, name, *codes)) is not None]
    if not found:
        advice = f"GET /v1/models lists pairs, such as {next(names_of(catalogue), 'en-de')}"
        raise NotFound("model {given} is not served", "model", given, advice=advice, given=given)
    return min(found, key=lambda each: each[0])[1]


def names_of(catalogue: Catalogue) -> Iterator[str]:
    """Yield the names of all pairs; of a model with very many, `auto-de` for each target `de`."""
    known: set[str] = set()
    for model in catalogue.models():
        codes, pairs = model.pairs.any_to_any, list(model.pairs.listed)
        if len(codes) ** 2 > _MAX_PAIRS:
            pairs += [(AUTO, target) for target in codes]
        else:
            pairs += [(source, target) for source in codes for target in codes if source != target]
        for source, target in pairs:
            pair = f"{source}-{target}"
            name = f"{model.name}:{pair}" if pair in known else pair
            if name not in known:  # else it is of another version of the model
                known.add(name)
                yield name
    yield from (f"{pair.source}-{pair.target}" for pair in catalogue.pivoted())


def _splits(pair: str) -> Iterator[tuple[str, str]]:
    parts = pair.split("-", _MAX_PARTS)
    return (("-".join(parts[:number]), "-".join(parts[number:])) for number in range(1, len(parts)))


def _distance(model: LoadedModel, source: str, target: str) -> int | None:
    """Return how far the codes of a model's pair are from these; `None` if it has no such pair."""
    if source == AUTO:
        return 0 if model.pairs.sources(target) else None
    found = model.pairs.find(source, target)
    return found.distance if found else None


def _routed(catalogue: Catalogue, name: str, source: str, target: str) -> NamedPair | None:
    """Return the pair if it is translated by way of a pivot language, or is one of a language with itself."""
    try:
        route = catalogue.resolve(name, "", source, target)
    except (InvalidRequest, NotFound):
        return None
    return NamedPair(name, source, target, route.writer.manifest.limits.max_output_tokens)
