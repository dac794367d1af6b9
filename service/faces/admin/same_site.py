"""Protection against other web pages, open in an operator's browser, that send requests to this server."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def refusal(method: str, headers: Mapping[str, str], own_host: str) -> str:
    """Return why a request is rejected, in one line; empty if it is allowed. Header names are in lower case.

    A page whose own name resolves to this server (DNS rebinding) sends that name as `Host`: only addresses, localhost
    and `own_host`, the configured one, are accepted. A page that posts sends its origin as `Origin`, and can't send
    JSON to another site without a preflight request, which is never answered. Tools without a browser send no `Origin`.
    """
    authority = headers.get("host", "")
    if not _is_own(_hostname(authority), own_host):
        return f"Host is {authority!r:.80}; allowed are addresses, localhost and the host of --admin-host."
    if method == "GET":
        return ""
    origin = headers.get("origin")
    if origin is not None and _authority(origin) != authority.lower():
        return f"Origin is {origin!r:.80}; only this server's own status page may do this."
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        return f"Content-Type is {content_type!r:.80}; expected application/json."
    return ""


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # mismatched brackets
        return None


def _hostname(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:  # mismatched brackets
        return ""


def _is_own(hostname: str, own_host: str) -> bool:
    if hostname in ("localhost", own_host.lower()):
        return hostname != ""
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True
