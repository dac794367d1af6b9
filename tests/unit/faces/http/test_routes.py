"""Which route a path has."""

import pytest

from service.domain.call import Call
from service.domain.errors import ServiceError
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route, Routes


async def handle(request: HttpRequest) -> HttpAnswer:
    raise NotImplementedError


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    raise NotImplementedError


def route(method: str, path: str) -> Route:
    return Route(method, path, f"{method} {path}", handle, failure)


ROUTES = Routes(
    [
        route("GET", "/a"),
        route("POST", "/a"),
        route("GET", "/a/{id}"),
        route("POST", "/a/{id}:go"),
        route("GET", "/a/b"),
    ]
)


@pytest.mark.parametrize(
    ("path", "methods", "parts"),
    [
        ("/a", {"GET", "POST"}, {}),
        ("/a/b", {"GET"}, {}),
        ("/a/c", {"GET"}, {"id": "c"}),
        ("/a/c%2Fd%20e", {"GET"}, {"id": "c/d e"}),
        ("/a/..%2f..", {"GET"}, {"id": "../.."}),
        ("/a/c:go", {"POST"}, {"id": "c"}),
        ("/a/c:stop", {"GET"}, {"id": "c:stop"}),
    ],
)
def test_a_path_is_found_with_its_open_parts(path: str, methods: set[str], parts: dict[str, str]) -> None:
    found = ROUTES.find(path)
    assert found is not None
    assert set(found.by_method) == methods
    assert found.parts == parts


@pytest.mark.parametrize("path", ["", "/", "/a/", "/a/b/c", "/A", "a", "/a/b/", "//a"])
def test_others_are_not(path: str) -> None:
    assert ROUTES.find(path) is None


def test_the_same_method_of_the_same_path_twice_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="twice"):
        Routes([route("GET", "/a"), route("GET", "/a")])
