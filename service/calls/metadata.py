"""Request ids and API keys in the metadata or headers of calls."""

import os
import re
from collections.abc import Iterable

Metadata = Iterable[tuple[str, str | bytes]]

REQUEST_ID_KEY = "x-request-id"

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_SCHEMES = ("bearer ", "deepl-auth-key ")  # of the header authorization; the second is sent by DeepL's clients
_API_KEYS = ("x-api-key", "x-goog-api-key")  # the second is sent by Google's clients


def request_id_in(metadata: Metadata) -> str:
    """Return the caller's request id, or a new one if it is missing or invalid. Names are in lower case."""
    given = next((value for key, value in metadata if key == REQUEST_ID_KEY), "")
    is_good = isinstance(given, str) and _REQUEST_ID.fullmatch(given)
    return str(given) if is_good else os.urandom(8).hex()


def api_key_in(metadata: Metadata) -> str:
    """Return the API key, or an empty string if there is none. Names are in lower case."""
    texts = {name: value for name, value in metadata if isinstance(value, str)}
    authorization = texts.get("authorization", "")
    for scheme in _SCHEMES:
        if authorization[: len(scheme)].lower() == scheme:
            return authorization[len(scheme) :].strip()
    return next((texts[name] for name in _API_KEYS if name in texts), "")
