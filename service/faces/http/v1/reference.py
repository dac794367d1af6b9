"""The reference page of our own API: the OpenAPI document as HTML, without scripts and without other addresses."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from http import HTTPStatus
from typing import Any

from service.faces.http.application import HttpAnswer

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --dim: light-dark(#555, #aaa); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.8rem; border: 1px solid var(--line); }
.scrolls { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); }
td:nth-child(2) { color: var(--dim); white-space: nowrap; }
"""
_EXAMPLE = {"text": "Where is the train station?", "source_language_code": "en", "target_language_code": "de"}
_REF = "#/components/schemas/"


def reference_page(document: Mapping[str, Any]) -> HttpAnswer:
    """Return the page for an OpenAPI document."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    body = "".join(_page(document)).encode()
    return HttpAnswer(HTTPStatus.OK, "text/html; charset=utf-8", body, headers)


def _page(document: Mapping[str, Any]) -> Iterator[str]:
    info, schemas = document["info"], document["components"]["schemas"]
    title = f"{info['title']} {info['version']}: HTTP API"
    yield f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
    yield "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    yield f"<style>{_STYLE}</style></head><body><main><h1>{escape(title)}</h1>"
    yield "<p>The same as <a href='/v1/openapi.json'>OpenAPI 3.1</a>, for programs.</p>"
    example = escape(json.dumps(_EXAMPLE))
    yield f"<pre>curl http://HOST:PORT/v1/translate -H 'Content-Type: application/json' \\\n    -d '{example}'</pre>"
    yield "<p>Where the server asks for a key, add <code>-H 'Authorization: Bearer KEY'</code>.</p>"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"<h2 id='{operation['operationId']}'><code>{method.upper()} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation['summary'])}</p>"
            for (_, content), words in (
                *((each, "Body") for each in operation.get("requestBody", {}).get("content", {}).items()),
                *((each, "Answer") for each in operation["responses"]["200"]["content"].items()),
            ):
                yield f"<p>{words}: {_type(content['schema'])}</p>"
    yield "<h2 id='messages'>Messages</h2>"
    for name, schema in schemas.items():
        yield f"<h3 id='{escape(name)}'>{escape(name)}</h3><p>{escape(schema.get('description', ''))}</p>"
        yield "<div class='scrolls' tabindex='0' role='region' aria-label='" + escape(name) + "'><table>"
        yield "<thead><tr><th scope='col'>field</th><th scope='col'>type</th><th scope='col'>meaning</th></tr></thead>"
        for field, about in schema.get("properties", {}).items():
            needed = "Required. " if field in schema.get("required", ()) else ""
            meaning = escape(f"{needed}{about.get('description', '')}".strip())
            yield f"<tr><td><code>{escape(field)}</code></td><td>{_type(about)}</td><td>{meaning}</td></tr>"
        yield "</table></div>"
    yield "</main></body></html>"


def _type(schema: Mapping[str, Any]) -> str:
    if reference := schema.get("$ref"):
        name = escape(reference.removeprefix(_REF))
        return f"<a href='#{name}'>{name}</a>"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema:
        return ", ".join(escape(json.dumps(each)) for each in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" {low:g} to {high:g}" if low is not None and high is not None else ""
    return escape(f"{kind}{bounds}")
