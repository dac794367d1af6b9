"""The methods of all APIs: which translate, and which don't. A test compares this with what a server serves."""

from collections.abc import Mapping

from service.faces.google.rules import UNSUPPORTED_RULES

_GRPC = "dragoman.v1.TranslationService"
_GOOGLE = "google.cloud.translation.v3.TranslationService"
_INFERENCE = "inference.GRPCInferenceService"

# By kind. What is here is in objectives, alerts and the autoscalers' load.
TRANSLATING: Mapping[str, tuple[str, ...]] = {
    "translate": (
        f"{_GRPC}/Translate",
        f"{_GOOGLE}/TranslateText",
        f"{_INFERENCE}/ModelInfer",
        f"{_INFERENCE}/ModelStreamInfer",
        "http/v1/translate",
        "http/libretranslate/translate",
        "http/deepl/translate",
        "http/google.v2/translate",
        "http/google.v3/TranslateText",
        "http/kserve/infer",
        "http/openai/chat_completions",
        "http/openai/responses",
        "admin/translate",
    ),
    "stream": (f"{_GRPC}/TranslateStream", "http/v1/translate_stream"),
    "document": ("http/v1/files", "http/libretranslate/translate_file", "http/deepl/document"),
}
KINDS = {method: kind for kind, methods in TRANSLATING.items() for method in methods}
_INFERENCE_METHODS = (
    *("ServerLive", "ServerReady", "ServerMetadata"),
    *("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"),
    *("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "TraceSetting", "LogSettings"),
    *(f"{kind}SharedMemory{name}" for kind in ("System", "Cuda") for name in ("Status", "Register", "Unregister")),
)
_OF_GOOGLE = ("DetectLanguage", "GetSupportedLanguages", "ListGlossaries", "GetGlossary", "ListGlossaryEntries")
_NOT_OVER_HTTP: Mapping[str, tuple[str, ...]] = {
    _GRPC: ("DetectLanguage", "ListModels"),
    _INFERENCE: _INFERENCE_METHODS,
    "grpc.health.v1.Health": ("Check", "List", "Watch"),
}
_OVER_HTTP: Mapping[str, tuple[str, ...]] = {
    "v1": ("detect", "languages", "models", "openapi", "docs"),
    "libretranslate": ("detect", "download_file", "suggest", "languages", "settings", "health"),
    "deepl": (
        *("languages", "v3/languages", "usage", "unsupported", "document_status", "document_result"),
        *("glossary_pairs", "list_glossaries", "get_glossary", "glossary_entries"),
        *("v3/list_glossaries", "v3/get_glossary", "v3/glossary_entries"),
    ),
    "google.v2": ("detect", "languages"),
    "kserve": (
        *("live", "ready", "metadata", "model_stats", "model_ready", "model_metadata", "model_config"),
        *("repository_index", "load", "unload", "trace_setting", "log_settings", "shared_memory", "generate"),
    ),
    "openai": ("model",),
}
_GOOGLES = {*_OF_GOOGLE, "GetGlossaryEntry", *(rule.name for rule in UNSUPPORTED_RULES)}
NOT_TRANSLATING = {
    "page",
    *(f"{service}/{name}" for service, names in _NOT_OVER_HTTP.items() for name in names),
    *(f"http/{api}/{name}" for api, names in _OVER_HTTP.items() for name in names),
    *(f"{_GOOGLE}/{name}" for name in _GOOGLES),
    *(f"http/google.v3/{name}" for name in _GOOGLES),
}
