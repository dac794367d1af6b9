"""The OpenAPI document: valid, complete, and what the reference page shows."""

from typing import Any

from service.domain.options import OPTIONS
from service.domain.translation import REQUEST_OPTIONS
from service.faces.http.v1.openapi import openapi_document
from service.faces.http.v1.reference import reference_page


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*map(references, node.values()))
    if isinstance(node, list):
        return set().union(*map(references, node))
    return set()


def test_every_reference_is_there() -> None:
    document = openapi_document()
    schemas = document["components"]["schemas"]
    assert all(reference.rpartition("/")[2] in schemas for reference in references(document))


def test_every_option_of_the_tables_is_there_with_its_bounds() -> None:
    schemas = openapi_document()["components"]["schemas"]
    options = schemas["DecodingOptions"]["properties"]
    assert list(options) == list(OPTIONS)
    for name, option in OPTIONS.items():
        assert option.help in options[name]["description"]
        assert options[name].get("maximum") == option.high
    request = schemas["TranslateRequest"]["properties"]
    assert set(REQUEST_OPTIONS) <= set(request)


def test_the_page_shows_every_field_and_allows_no_scripts() -> None:
    document = openapi_document()
    page = reference_page(document)
    text = page.body.decode()
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in text
    assert text.endswith("</html>\n")
