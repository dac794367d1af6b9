"""Which route a path has."""

from unittest.mock import Mock

import pytest

from service.domain.call import Call
from service.domain.errors import ServiceError
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Failure, Route, Routes


async def handle(request: HttpRequest) -> HttpAnswer:
    raise NotImplementedError


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    raise NotImplementedError


def route(method: str, path: str, failure: Failure = failure) -> Route:
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
        ("//a", {"GET", "POST"}, {}),
        ("/a/", {"GET", "POST"}, {}),
        ("//a///c//", {"GET"}, {"id": "c"}),
        ("/a/c:go/", {"POST"}, {"id": "c"}),
    ],
)
def test_a_path_is_found_with_its_open_parts(path: str, methods: set[str], parts: dict[str, str]) -> None:
    found = ROUTES.find(path)
    assert found is not None
    assert set(found.by_method) == methods
    assert found.parts == parts


@pytest.mark.parametrize("path", ["", "/", "//", "/a/b/c", "/A", "/b", "/aa"])
def test_others_are_not(path: str) -> None:
    assert ROUTES.find(path) is None


@pytest.mark.parametrize(
    ("path", "is_there"),
    [("/mt/a", True), ("/a", True), ("//mt//a/", True), ("/mt", False), ("/mta", False), ("/mt/mt/a", False)],
)
def test_a_prefix_that_a_proxy_leaves_is_passed_over(path: str, is_there: bool) -> None:
    assert (Routes(ROUTES.all, "/mt").find(path) is not None) is is_there


def test_a_prefix_is_before_the_page_too() -> None:
    routes = Routes([route("GET", "/"), route("GET", "/a")], "/x/mt")
    assert [routes.find(path) is not None for path in ("/", "/x/mt", "/x/mt/", "/x/mt//a", "/x")] == [True] * 4 + [
        False
    ]


def test_the_same_method_of_the_same_path_twice_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="twice"):
        Routes([route("GET", "/a"), route("GET", "/a")])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "ours"),
        ("/nothing", "ours"),
        ("", "ours"),
        ("/a/b", "first"),
        ("/a/x/y/z", "first"),
        ("/a/models", "second"),
        ("/a/models/m/1/2/3/4/5/6", "second"),
        ("/a/modelsx", "first"),
        ("//a", "first"),
    ],
)
def test_a_path_without_a_route_is_told_by_the_api_whose_paths_begin_like_it(path: str, name: str) -> None:
    failures: list[Failure] = [Mock(), Mock(), Mock()]
    names = dict(zip(("ours", "first", "second"), failures, strict=True))
    routes = Routes(
        [
            route("GET", "/o", names["ours"]),
            route("GET", "/a/b", names["first"]),
            route("GET", "/a/models/{name}", names["second"]),
        ]
    )
    assert routes.failure(path) is names[name]
