"""The reference page of our own API: the OpenAPI document as HTML that loads nothing from other sites."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from service.faces.http.application import HttpAnswer
from service.faces.page.document import built, read

_STYLE = """
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin-bottom: .8rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .4rem; }
h3 { font-size: 1rem; margin: 2rem 0 .2rem; } p { margin: .5rem 0; } a { color: var(--one); }
pre { overflow-x: auto; padding: .9rem 1rem; } pre, .card {
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.card { overflow-x: auto; padding: 0 1rem; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem 1rem .5rem 0; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; } th { color: var(--muted); font-weight: 500; }
"""
_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title><!-- title --></title>
<!-- styles --></head>
<body><main><h1><!-- title --></h1>
"""
_SCRIPT = """
document.querySelector("#address").textContent = new URL("..", location.href).href.replace(/\\/$/, "");
"""  # what the page was loaded from, which no server behind a proxy knows
_EXAMPLE = {"text": "Where is the train station?", "target_language_code": "de"}
_REF = "#/components/schemas/"
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def reference_page(document: Mapping[str, Any]) -> HttpAnswer:
    title = f"{document['info']['title']} {document['info']['version']}: HTTP API"
    html = _HEAD + "".join(_body(document)) + "</main><!-- scripts --></body></html>\n"
    return built(html, [read("theme.css"), _STYLE], [_SCRIPT], {"title": escape(title)}).answer(_HEADERS)


def _body(document: Mapping[str, Any]) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    errors: dict[str, str] = {}
    yield "<p><a href='../'>Translate in the browser</a></p>"
    yield "<p>The same as <a href='openapi.json'>OpenAPI 3.1</a>, for programs.</p>"
    command = f"/v1/translate -H 'Content-Type: application/json' \\\n    -d '{json.dumps(_EXAMPLE)}'"
    yield "<pre tabindex='0' role='region' aria-label='Example'>curl <span id='address'>http://127.0.0.1:8080</span>"
    yield f"{escape(command)}</pre>"
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
            failed = {status: about for status, about in operation["responses"].items() if status != "200"}
            yield f"<p>Errors: {', '.join(failed)}: {_type({'$ref': f'{_REF}Error'})}</p>"
            errors |= {status: about["description"] for status, about in failed.items()}
    yield "<h2 id='errors'>Errors</h2><div class='card' tabindex='0' role='region' aria-label='Errors'><table>"
    yield "<thead><tr><th scope='col'>status</th><th scope='col'>meaning</th></tr></thead>"
    for status, description in sorted(errors.items()):
        yield f"<tr><td>{status}</td><td>{escape(description)}</td></tr>"
    yield "</table></div>"
    yield "<h2 id='messages'>Messages</h2>"
    for name, schema in schemas.items():
        yield f"<h3 id='{escape(name)}'>{escape(name)}</h3><p>{escape(schema.get('description', ''))}</p>"
        yield f"<div class='card' tabindex='0' role='region' aria-label='{escape(name)}'><table>"
        yield "<thead><tr><th scope='col'>field</th><th scope='col'>type</th><th scope='col'>meaning</th></tr></thead>"
        for field, about in schema.get("properties", {}).items():
            needed = "Required. " if field in schema.get("required", ()) else ""
            meaning = escape(f"{needed}{about.get('description', '')}".strip())
            yield f"<tr><td><code>{escape(field)}</code></td><td>{_type(about)}</td><td>{meaning}</td></tr>"
        yield "</table></div>"


def _type(schema: Mapping[str, Any]) -> str:
    if reference := schema.get("$ref"):
        name = escape(reference.removeprefix(_REF))
        return f"<a href='#{name}'>{name}</a>"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" {low:g} to {high:g}" if low is not None and high is not None else ""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null") + bounds
    if "enum" in schema:
        return ", ".join(escape(json.dumps(each)) for each in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    return escape(f"{kind}{bounds}")
