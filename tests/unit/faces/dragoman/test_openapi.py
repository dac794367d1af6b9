"""The OpenAPI document: valid, complete, and what the reference page shows."""

from html import escape
from typing import Any, cast

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from service.domain.options import OPTIONS
from service.domain.translation import REQUEST_OPTIONS
from service.faces.dragoman.http import V1
from service.faces.dragoman.openapi import openapi_document
from service.faces.dragoman.reference import reference_page
from service.jobs.translation import DocumentTranslator
from service.translation.translator import Translator


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*map(references, node.values()))
    if isinstance(node, list):
        return set().union(*map(references, node))
    return set()


def test_every_reference_is_there() -> None:
    document = openapi_document()
    components = document["components"]
    there = {f"#/components/{kind}/{name}" for kind in ("schemas", "headers") for name in components[kind]}
    assert references(document) == there


def test_it_is_valid() -> None:
    OpenAPIV31SpecValidator(openapi_document()).validate()


def test_control_a_mistake_is_found() -> None:
    document = openapi_document()
    del document["paths"]["/v1/translate"]["post"]["responses"]["400"]["description"]
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV31SpecValidator(document).validate()


def test_it_has_every_route_and_no_other() -> None:
    face = V1(cast(Translator, None), cast(DocumentTranslator, None), 60.0)
    routes = {route.path: (route.method.lower(), route.needs_key) for route in face.routes()}
    described = {
        path: (method, operation.get("security") != [])
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
    }
    assert described == routes


@pytest.mark.parametrize("kind", ["TranslateRequest", "FileRequest", "DetectRequest", "TermMessage", "DecodingOptions"])
def test_every_field_of_a_request_has_a_description(kind: str) -> None:
    properties = openapi_document()["components"]["schemas"][kind]["properties"]
    assert {name for name, about in properties.items() if not about.get("description")} == set()


def test_answers_have_their_headers_and_statuses() -> None:
    paths = openapi_document()["paths"]
    answered = paths["/v1/files"]["post"]["responses"]
    assert set(answered["200"]["headers"]) == {"x-request-id", "content-disposition", "x-document-notes"}
    assert set(answered["429"]["headers"]) == {"x-request-id", "retry-after"}
    assert {"400", "401", "404", "408", "413", "415", "429", "431", "500", "503", "504"} < set(answered)
    for methods in paths.values():
        for operation in methods.values():
            assert all("x-request-id" in each["headers"] for each in operation["responses"].values())


def test_every_option_of_the_tables_is_there_with_its_bounds() -> None:
    schemas = openapi_document()["components"]["schemas"]
    options = schemas["DecodingOptions"]["properties"]
    assert list(options) == list(OPTIONS)
    for name, option in OPTIONS.items():
        assert option.help in options[name]["description"]
        assert options[name].get("maximum") == option.high
    request = schemas["TranslateRequest"]["properties"]
    assert set(REQUEST_OPTIONS) <= set(request)


def test_the_page_shows_every_field_and_has_one_script() -> None:
    document = openapi_document()
    page = reference_page(document)
    text = page.body.decode()
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in text
    for status, answer in document["paths"]["/v1/translate"]["post"]["responses"].items():
        assert status == "200" or f"<td>{status}</td><td>{escape(answer['description'])}</td>" in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert text.count("<script") == 1  # which shows the server's address
    assert text.endswith("</html>\n")
