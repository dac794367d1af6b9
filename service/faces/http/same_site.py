"""Rules for other web sites' pages that call this server from a browser.

Those that may are answered as CORS wants (https://fetch.spec.whatwg.org/#http-cors-protocol). The others may send
requests nevertheless, to a port that asks for no key.

A page whose own name resolves to this server (DNS rebinding) sends that name as `Host`, and can read the answers. Such
a name has a dot; those without, such as containers', come from this network. A page of another site can't read answers,
but what it sends may change something: then the browser adds `Origin`, and mostly `Sec-Fetch-Site`
(https://www.w3.org/TR/fetch-metadata/). Tools that are no browsers send neither, and no browser omits `Host`.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import urlsplit

from service.calls.pipeline import REQUEST_ID_KEY
from service.domain.call import TIMING_KEY
from service.domain.errors import Forbidden
from service.faces.http.application import PLAIN, HttpAnswer

ANY = "*"

_NONE: Mapping[str, str] = MappingProxyType({})
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

_CHANGES_NOTHING = ("GET", "HEAD", "OPTIONS")
_OWN_SITES = ("same-origin", "none")  # the latter: no page asked for it, but somebody at the browser


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
        allowed = {"Access-Control-Allow-Methods": _METHODS, "Access-Control-Max-Age": "600"}
        if wanted := headers.get("access-control-request-headers"):
            allowed["Access-Control-Allow-Headers"] = wanted
        return HttpAnswer(HTTPStatus.OK, PLAIN, b"", allowed)


def has_own_host(headers: Mapping[str, str], own_host: str) -> bool:
    """Return whether `Host` is an address, a name without a dot, or `own_host`; header names are in lower case."""
    return "host" not in headers or _is_own(_hostname(headers["host"]), own_host)


def has_own_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request is from no page, or one of the same `Host`."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in _OWN_SITES
    return origin is None or _authority(origin) == headers.get("host", "").lower()


@dataclass(frozen=True, slots=True)
class PageRules:
    """Rules for requests from browsers to a port without keys.

    Pages of `origins` may do everything. `own_host` is the port's name besides addresses and names without a dot;
    `None`: any name.
    """

    origins: frozenset[str]
    own_host: str | None

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Check a request's head, names in lower case; raise `Forbidden` if another site's page may have sent it."""
        if ANY in self.origins:
            return
        if self.own_host is not None and not has_own_host(headers, self.own_host):
            raise Forbidden(
                "Host is {host}",
                host=headers["host"],
                allowed="addresses, names without a dot and the name in http_host",
                advice="for other names start the server with api_keys, or with http_without_keys",
            )
        is_allowed = headers.get("origin") in self.origins
        if method not in _CHANGES_NOTHING and not is_allowed and not has_own_origin(headers):
            raise Forbidden(
                "Origin is {origin}",
                origin=headers.get("origin", ""),
                allowed=", ".join(("this server's own page", *sorted(self.origins))),
                advice="for pages of another site start the server with its origin as http_origin",
            )


def page_rules(origins: Iterable[str], own_host: str, *, asks_for_keys: bool, takes_anyone: bool) -> PageRules | None:
    """Return the rules of the port for calls, which `takes_anyone` if configured so (`http_without_keys`).

    With keys there are none: no page has one, and browsers don't add it, unlike cookies.
    """
    return None if asks_for_keys else PageRules(frozenset(origins), None if takes_anyone else own_host)


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # mismatched brackets
        return None


def _hostname(authority: str) -> str:
    """Return the host of a `Host` header's value; empty for what is none, as one with a user (RFC 9110, 7.2)."""
    if "@" in authority:
        return ""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:  # mismatched brackets
        return ""


def _is_own(hostname: str, own_host: str) -> bool:
    if hostname == own_host.lower() or not {".", ":"} & set(hostname):
        return hostname != ""
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True
