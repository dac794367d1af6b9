"""Which requests to the operators' port pages of other web sites can have sent."""

from collections.abc import Mapping

from service.faces.http.same_site import has_own_host, has_own_origin


def refusal(method: str, headers: Mapping[str, str], own_host: str) -> str:
    """Return why a request is rejected, in one line; empty if it is allowed. Header names are in lower case.

    See `faces.http.same_site`; and a page can't send JSON to another site without a preflight request, which is never
    answered here.
    """
    if not has_own_host(headers, own_host):
        given = headers["host"]
        return f"Host is {given!r:.80}; allowed are addresses, names without a dot and that of --admin-host."
    if method == "GET":
        return ""
    if not has_own_origin(headers):
        return f"Origin is {headers.get('origin', '')!r:.80}; only this server's own status page may do this."
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        return f"Content-Type is {content_type!r:.80}; expected application/json."
    return ""
