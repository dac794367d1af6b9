"""Routes and errors of the Open Inference Protocol."""

from typing import cast

import pytest

from service.faces.http.routes import Routes
from service.faces.kserve.http import KServe
from service.faces.kserve.methods import KServeMethods

ROUTES = Routes(KServe(cast(KServeMethods, None), 60.0).routes())


@pytest.mark.parametrize(
    ("method", "path", "name", "parts"),
    [
        ("GET", "/v2", "metadata", {}),
        ("GET", "/v2/models/stats", "model_stats", {}),
        ("GET", "/v2/models/stats/stats", "model_stats", {"name": "stats"}),
        ("GET", "/v2/models/a%20b", "model_metadata", {"name": "a b"}),
        ("GET", "/v2/models/a/versions/3", "model_metadata", {"name": "a", "version": "3"}),
        ("GET", "/v2/models/a/versions/3/ready", "model_ready", {"name": "a", "version": "3"}),
        ("POST", "/v2/models/a/versions/3/infer", "infer", {"name": "a", "version": "3"}),
        ("POST", "/v2/repository/index", "repository_index", {}),
        ("POST", "/v2/repository/other/index", "repository_index", {"repository": "other"}),
        ("POST", "/v2/repository/models/a/unload", "unload", {"name": "a"}),
        ("POST", "/v2/repository/other/models/a/load", "load", {"repository": "other", "name": "a"}),
        ("GET", "/v2/models/a/trace/setting", "trace_setting", {"name": "a"}),
        ("POST", "/v2/cudasharedmemory/region/r/register", "shared_memory", {"region": "r"}),
    ],
)
def test_paths_are_triton_s(method: str, path: str, name: str, parts: dict[str, str]) -> None:
    found = ROUTES.find(path)
    assert found is not None
    assert found.by_method[method].name == f"http/kserve/{name}"
    assert found.parts == parts


@pytest.mark.parametrize("path", ["/v2/translate", "/v2/usage", "/v2/languages", "/v2/glossaries", "/v2/glossaries/a"])
def test_paths_of_deepl_are_left_to_it(path: str) -> None:
    assert ROUTES.find(path) is None


def test_probes_of_the_server_need_no_key_and_only_inference_queues() -> None:
    open_to_all = {route.path for route in ROUTES.all if not route.needs_key}
    assert open_to_all == {"/v2/health/live", "/v2/health/ready"}
    assert {route.name for route in ROUTES.all if route.queues} == {"http/kserve/infer"}
