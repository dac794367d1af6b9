"""HTTP method and path of each method of Cloud Translation v3, and the errors of unsupported ones.

These are the annotations `google.api.http` of Google's translation_service.proto, and of operations and locations.
`{parent=projects/*}` in a path is a field of the request; `*` stands for one segment.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain.call import CallKind
from service.domain.errors import Public, Unimplemented

_TRANSLATION = "google.cloud.translation.v3.TranslationService"
_OPERATIONS, _LOCATIONS = "google.longrunning.Operations", "google.cloud.location.Locations"
_FIELD = re.compile(r"\{([\w.]+)=([^}]+)\}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One method of one path. With a body, that is the request; else the query is."""

    method: str
    template: str
    name: str  # of the gRPC method
    service: str = _TRANSLATION

    @property
    def path(self) -> str:
        return _FIELD.sub(lambda found: _numbered(found[2]), self.template)

    @property
    def has_body(self) -> bool:
        return self.method not in ("GET", "DELETE")

    def bound(self, parts: Mapping[str, str]) -> tuple[str, str]:
        found = _FIELD.search(self.template)
        assert found is not None, f"{self.template} has no field"
        return found[1], _numbered(found[2]).format_map(parts)


def _numbered(pattern: str) -> str:
    first, *rest = pattern.split("*")
    return first + "".join(f"{{part{number}}}{text}" for number, text in enumerate(rest))


_GET, _POST, _PATCH, _DELETE = "GET", "POST", "PATCH", "DELETE"

RULES = (
    Rule(_POST, "/v3/{parent=projects/*/locations/*}:translateText", "TranslateText"),
    Rule(_POST, "/v3/{parent=projects/*}:translateText", "TranslateText"),
    Rule(_POST, "/v3/{parent=projects/*/locations/*}:detectLanguage", "DetectLanguage"),
    Rule(_POST, "/v3/{parent=projects/*}:detectLanguage", "DetectLanguage"),
    Rule(_GET, "/v3/{parent=projects/*/locations/*}/supportedLanguages", "GetSupportedLanguages"),
    Rule(_GET, "/v3/{parent=projects/*}/supportedLanguages", "GetSupportedLanguages"),
    Rule(_GET, "/v3/{parent=projects/*/locations/*}/glossaries", "ListGlossaries"),
    Rule(_GET, "/v3/{name=projects/*/locations/*/glossaries/*}", "GetGlossary"),
    Rule(_GET, "/v3/{parent=projects/*/locations/*/glossaries/*}/glossaryEntries", "ListGlossaryEntries"),
    Rule(_GET, "/v3/{name=projects/*/locations/*/glossaries/*/glossaryEntries/*}", "GetGlossaryEntry"),
)

# Methods that this server does not have, by what it has instead.
UNSUPPORTED: Mapping[str, Sequence[Rule]] = {
    "use TranslateText with a language that GetSupportedLanguages lists": (
        Rule(_POST, "/v3/{parent=projects/*/locations/*}:romanizeText", "RomanizeText"),
        Rule(_POST, "/v3/{parent=projects/*}:romanizeText", "RomanizeText"),
    ),
    "send texts or HTML with TranslateText": (
        Rule(_POST, "/v3/{parent=projects/*/locations/*}:translateDocument", "TranslateDocument"),
        Rule(_POST, "/v3/{parent=projects/*/locations/*}:batchTranslateText", "BatchTranslateText"),
        Rule(_POST, "/v3/{parent=projects/*/locations/*}:batchTranslateDocument", "BatchTranslateDocument"),
    ),
    "glossaries are files on the server; change the files": (
        Rule(_POST, "/v3/{parent=projects/*/locations/*}/glossaries", "CreateGlossary"),
        Rule(_PATCH, "/v3/{glossary.name=projects/*/locations/*/glossaries/*}", "UpdateGlossary"),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/glossaries/*}", "DeleteGlossary"),
        Rule(_POST, "/v3/{parent=projects/*/locations/*/glossaries/*}/glossaryEntries", "CreateGlossaryEntry"),
        Rule(
            _PATCH,
            "/v3/{glossary_entry.name=projects/*/locations/*/glossaries/*/glossaryEntries/*}",
            "UpdateGlossaryEntry",
        ),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/glossaries/*/glossaryEntries/*}", "DeleteGlossaryEntry"),
    ),
    "models are bundles on the server; export a checkpoint to create one": (
        Rule(_POST, "/v3/{parent=projects/*/locations/*}/datasets", "CreateDataset"),
        Rule(_GET, "/v3/{parent=projects/*/locations/*}/datasets", "ListDatasets"),
        Rule(_GET, "/v3/{name=projects/*/locations/*/datasets/*}", "GetDataset"),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/datasets/*}", "DeleteDataset"),
        Rule(_POST, "/v3/{dataset=projects/*/locations/*/datasets/*}:importData", "ImportData"),
        Rule(_POST, "/v3/{dataset=projects/*/locations/*/datasets/*}:exportData", "ExportData"),
        Rule(_GET, "/v3/{parent=projects/*/locations/*/datasets/*}/examples", "ListExamples"),
        Rule(_POST, "/v3/{parent=projects/*/locations/*}/models", "CreateModel"),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/models/*}", "DeleteModel"),
    ),
    "dragoman.v1.TranslationService/ListModels lists the models, and GetSupportedLanguages their languages": (
        Rule(_GET, "/v3/{parent=projects/*/locations/*}/models", "ListModels"),
        Rule(_GET, "/v3/{name=projects/*/locations/*/models/*}", "GetModel"),
    ),
    "use TranslateText, with a glossary for terms": (
        Rule(_POST, "/v3/{parent=projects/*/locations/*}:adaptiveMtTranslate", "AdaptiveMtTranslate"),
        Rule(_POST, "/v3/{parent=projects/*/locations/*}/adaptiveMtDatasets", "CreateAdaptiveMtDataset"),
        Rule(_GET, "/v3/{parent=projects/*/locations/*}/adaptiveMtDatasets", "ListAdaptiveMtDatasets"),
        Rule(_GET, "/v3/{name=projects/*/locations/*/adaptiveMtDatasets/*}", "GetAdaptiveMtDataset"),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/adaptiveMtDatasets/*}", "DeleteAdaptiveMtDataset"),
        Rule(
            _POST,
            "/v3/{parent=projects/*/locations/*/adaptiveMtDatasets/*}:importAdaptiveMtFile",
            "ImportAdaptiveMtFile",
        ),
        Rule(_GET, "/v3/{parent=projects/*/locations/*/adaptiveMtDatasets/*}/adaptiveMtFiles", "ListAdaptiveMtFiles"),
        Rule(_GET, "/v3/{name=projects/*/locations/*/adaptiveMtDatasets/*/adaptiveMtFiles/*}", "GetAdaptiveMtFile"),
        Rule(
            _DELETE, "/v3/{name=projects/*/locations/*/adaptiveMtDatasets/*/adaptiveMtFiles/*}", "DeleteAdaptiveMtFile"
        ),
        Rule(
            _GET,
            "/v3/{parent=projects/*/locations/*/adaptiveMtDatasets/*/adaptiveMtFiles/*}/adaptiveMtSentences",
            "ListAdaptiveMtSentences",
        ),
        Rule(
            _GET,
            "/v3/{parent=projects/*/locations/*/adaptiveMtDatasets/*}/adaptiveMtSentences",
            "ListAdaptiveMtSentences",
        ),
    ),
    "the parent of a call may name any location": (
        Rule(_GET, "/v3/{name=projects/*}/locations", "ListLocations", _LOCATIONS),
        Rule(_GET, "/v3/{name=projects/*/locations/*}", "GetLocation", _LOCATIONS),
    ),
    "no call of this server starts a long-running operation": (
        Rule(_GET, "/v3/{name=projects/*/locations/*}/operations", "ListOperations", _OPERATIONS),
        Rule(_GET, "/v3/{name=projects/*/locations/*/operations/*}", "GetOperation", _OPERATIONS),
        Rule(_DELETE, "/v3/{name=projects/*/locations/*/operations/*}", "DeleteOperation", _OPERATIONS),
        Rule(_POST, "/v3/{name=projects/*/locations/*/operations/*}:cancel", "CancelOperation", _OPERATIONS),
        Rule(_POST, "/v3/{name=projects/*/locations/*/operations/*}:wait", "WaitOperation", _OPERATIONS),
    ),
}

KINDS: Mapping[str, CallKind] = {"TranslateText": CallKind.TRANSLATE}  # all others don't translate

UNSUPPORTED_RULES = tuple(rule for rules in UNSUPPORTED.values() for rule in rules)
_ADVICE_OF = {rule.name: instead for instead, rules in UNSUPPORTED.items() for rule in rules}


def refusal(method: str) -> Unimplemented:
    return Unimplemented("{method} is not supported by this server", method=Public(method), advice=_ADVICE_OF[method])
