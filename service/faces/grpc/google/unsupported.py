"""Unsupported methods of Google Cloud Translation v3: their errors name the alternative."""

from typing import Any

import grpc

from service.domain.errors import Unimplemented

_TRANSLATION = "google.cloud.translation.v3.TranslationService"

_TEXTS = "send texts, also HTML, with TranslateText"
_GLOSSARIES = "glossaries are files on the server; change those"
_MODELS = "dragoman.v1.TranslationService/ListModels tells the models, and GetSupportedLanguages their languages"
_BUNDLES = "models are bundles on the server; export a checkpoint to one"
_ADAPTIVE = "TranslateText translates, and keeps to terms with a glossary"

_INSTEAD: dict[str, dict[str, str]] = {
    _TRANSLATION: {
        **dict.fromkeys(("TranslateDocument", "BatchTranslateText", "BatchTranslateDocument"), _TEXTS),
        "RomanizeText": "TranslateText translates into the languages that GetSupportedLanguages tells",
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
        "no call of this server starts an operation",
    ),
    "google.cloud.location.Locations": dict.fromkeys(
        ("ListLocations", "GetLocation"), "any location will do in the parent of a call"
    ),
}

# Every method is listed, so that the metrics' label `method` has a fixed set of values.
_MESSAGES = {
    f"/{service}/{method}": f"{method} is not supported by this server; {instead}."
    for service, methods in _INSTEAD.items()
    for method, instead in methods.items()
}


class UnsupportedMethods(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Answers these methods with UNIMPLEMENTED, and no others."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """See `grpc.GenericRpcHandler`."""
        message = _MESSAGES.get(handler_call_details.method)
        if message is None:
            return None

        async def refuse(request: bytes, context: Any) -> bytes:
            raise Unimplemented(message)

        return grpc.unary_unary_rpc_method_handler(refuse)
