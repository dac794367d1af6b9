"""The grants of an API key."""

from dataclasses import dataclass

from service.domain.errors import Forbidden, Public, listed


@dataclass(frozen=True, slots=True)
class Grants:
    """The models and glossaries that a key may use, by name; `None` stands for all of them."""

    key: str = ""
    models: frozenset[str] | None = None
    glossaries: frozenset[str] | None = None

    def allows_model(self, name: str) -> bool:
        return self.models is None or name in self.models

    def allows_glossary(self, name: str) -> bool:
        return self.glossaries is None or name in self.glossaries

    def check_model(self, name: str) -> None:
        if self.models is not None and name not in self.models:
            raise self._refusal("model", name, self.models)

    def check_glossary(self, name: str) -> None:
        if self.glossaries is not None and name not in self.glossaries:
            raise self._refusal("glossary", name, self.glossaries)

    def _refusal(self, kind: str, name: str, allowed: frozenset[str]) -> Forbidden:
        return Forbidden(
            "key {key} may not use {kind} {name}",
            key=Public(self.key),
            kind=Public(kind),
            name=name,
            advice=f"it may use {listed(sorted(allowed))}",
        )


EVERYTHING = Grants()
