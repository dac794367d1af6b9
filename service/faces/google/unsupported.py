"""Unsupported methods of Google Cloud Translation v3: their errors name the alternative."""

from typing import Any

import grpc

from service.domain.errors import Public, Unimplemented

_TRANSLATION = "google.cloud.translation.v3.TranslationService"

_TEXTS = "send texts or HTML with TranslateText"
_GLOSSARIES = "glossaries are files on the server; change the files"
_MODELS = "dragoman.v1.TranslationService/ListModels lists the models, and GetSupportedLanguages their languages"
_BUNDLES = "models are bundles on the server; export a checkpoint to create one"
_ADAPTIVE = "use TranslateText, with a glossary for terms"

_INSTEAD: dict[str, dict[str, str]] = {
    _TRANSLATION: {
        **dict.fromkeys(("TranslateDocument", "BatchTranslateText", "BatchTranslateDocument"), _TEXTS),
        "RomanizeText": "use TranslateText with a language that GetSupportedLanguages lists",
        **dict.fromkeys(("CreateGlossary", "UpdateGlossary", "DeleteGlossary"), _GLOSSARIES),
        **dict.fromkeys(("CreateGlossaryEntry", "UpdateGlossaryEntry", "DeleteGlossaryEntry"), _GLOSSARIES),
        **dict.fromkeys(("ListModels", "GetModel"), _MODELS),
        **dict.fromkeys(("CreateModel", "DeleteModel"), _BUNDLES),
        **dict.fromkeys(("CreateDataset", "GetDataset", "ListDatasets", "DeleteDataset"), _BUNDLES),
        **dict.fromkeys(("ImportData", "ExportData", "ListExamples"), _BUNDLES),
        **dict.fromkeys(("CreateAdaptiveMtDataset", "GetAdaptiveMtDataset", "ListAdaptiveMtDatasets"), _ADAPTIVE),
        **dict.fromkeys(("DeleteAdaptiveMtDataset", "AdaptiveMtTranslate", "ImportAdaptiveMtFile"), _ADAPTIVE),
        **dict.fromkeys(("GetAdaptiveMtFile", "ListAdaptiveMtFiles", "DeleteAdaptiveMtFile"), _ADAPTIVE),
        "ListAdaptiveMtSentences": _ADAPTIVE,
    },
    "google.longrunning.Operations": dict.fromkeys(
        ("ListOperations", "GetOperation", "DeleteOperation", "CancelOperation", "WaitOperation"),
        "no call of this server starts a long-running operation",
    ),
    "google.cloud.location.Locations": dict.fromkeys(
        ("ListLocations", "GetLocation"), "the parent of a call may name any location"
    ),
}

# Every method is listed, so that the metrics' label `method` has a fixed set of values.
ADVICE = {
    f"/{service}/{method}": (method, instead)
    for service, methods in _INSTEAD.items()
    for method, instead in methods.items()
}

_ADVICE_OF = dict(ADVICE.values())


def refusal(method: str) -> Unimplemented:
    """Return the error of a method, such as `CreateGlossary`."""
    return Unimplemented("{method} is not supported by this server", method=Public(method), advice=_ADVICE_OF[method])


class UnsupportedMethods(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Answers these methods with UNIMPLEMENTED, and no others."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found = ADVICE.get(handler_call_details.method)
        if found is None:
            return None
        method, _ = found

        async def refuse(request: bytes, context: Any) -> bytes:
            raise refusal(method)

        return grpc.unary_unary_rpc_method_handler(refuse)
