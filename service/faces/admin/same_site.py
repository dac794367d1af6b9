"""Keeps other web pages, open in an operator's browser, from reading or doing anything here."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def refusal(method: str, headers: Mapping[str, str], own_host: str) -> str:
    """Why a request is refused, in one line; empty if it is fine. Names of headers are in lower case.

    A page that has its own name resolve to this server (DNS rebinding) names itself in `Host`: only addresses,
    localhost and `own_host`, the configured one, are answered. A page that posts says in `Origin` where it is from, and
    can't send JSON to another site without asking first, which nobody answers. Tools without a browser send no
    `Origin`.
    """
    authority = headers.get("host", "")
    if not _is_own(_hostname(authority), own_host):
        return f"Host is {authority!r:.80}; allowed are addresses, localhost and the host of --admin-host."
    if method == "GET":
        return ""
    origin = headers.get("origin")
    if origin is not None and _authority(origin) != authority.lower():
        return f"Origin is {origin!r:.80}; only the status page of this very server may do this."
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        return f"Content-Type is {content_type!r:.80}; expected application/json."
    return ""


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # brackets that don't fit
        return None


def _hostname(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:  # brackets that don't fit
        return ""


def _is_own(hostname: str, own_host: str) -> bool:
    if hostname in ("localhost", own_host.lower()):
        return hostname != ""
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True
