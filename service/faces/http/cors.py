"""Cross-origin requests (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol): which pages may call this server."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType

from service.calls.pipeline import REQUEST_ID_KEY
from service.domain.call import TIMING_KEY
from service.faces.http.application import PLAIN, HttpAnswer

ANY = "*"

_NONE: Mapping[str, str] = MappingProxyType({})
_KEPT_SECONDS = 600
_METHODS = "GET, POST, PUT, PATCH, DELETE"
# What a page may read of an answer besides its body: all that some API tells in headers.
_EXPOSED = ", ".join(
    (
        REQUEST_ID_KEY,
        TIMING_KEY,
        "retry-after",
        "www-authenticate",
        "content-disposition",
        "x-document-notes",
        "x-document-report",
        "dragoman-finish-reasons",
        "inference-header-content-length",
    )
)


class Cors:
    """The pages that may call, by origin; by default none. Cookies are never used, so credentials are not allowed."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        """Allow `origins`, such as https://example.org, or any with `*`."""
        self._origins = frozenset(origins)

    def headers(self, origin: str) -> Mapping[str, str]:
        """Return the headers of every answer to a page of this origin, or without one if it is empty."""
        if not self._origins:
            return _NONE
        if ANY in self._origins:
            return {"Access-Control-Allow-Origin": ANY, "Access-Control-Expose-Headers": _EXPOSED}
        if origin not in self._origins:
            return {"Vary": "Origin"}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": _EXPOSED,
            "Vary": "Origin",
        }

    def preflight(self, method: str, headers: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer to a browser that asks before it sends a page's call; `None` if it is another request."""
        is_allowed = ANY in self._origins or headers.get("origin") in self._origins
        if method != "OPTIONS" or not is_allowed or "access-control-request-method" not in headers:
            return None
        allowed = {"Access-Control-Allow-Methods": _METHODS, "Access-Control-Max-Age": str(_KEPT_SECONDS)}
        if wanted := headers.get("access-control-request-headers"):
            allowed["Access-Control-Allow-Headers"] = wanted
        return HttpAnswer(HTTPStatus.OK, PLAIN, b"", allowed)
