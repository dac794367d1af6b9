"""As much of Kubernetes' API as Helm and kubectl ask before they send a Deployment: discovery, and live objects."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

# Per group and version, the kinds of the chart's objects and their plurals.
_KINDS = {
    "v1": {"ConfigMap": "configmaps", "Pod": "pods", "Service": "services", "ServiceAccount": "serviceaccounts"},
    "apps/v1": {"Deployment": "deployments"},
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "keda.sh/v1alpha1": {"ScaledObject": "scaledobjects"},
    "monitoring.coreos.com/v1": {"PodMonitor": "podmonitors"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
}


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _path(document: dict[str, Any]) -> str:
    version, metadata = document["apiVersion"], document["metadata"]
    plural = _KINDS[version][document["kind"]]
    return f"{_root(version)}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"


def _discovery() -> dict[str, Any]:
    groups = []
    found: dict[str, Any] = {"/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}}
    for version, kinds in _KINDS.items():
        resources = [
            {"name": plural, "kind": kind, "namespaced": True, "verbs": ["get", "patch"]}
            for kind, plural in kinds.items()
        ]
        found[_root(version)] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        if "/" in version:
            entry = {"groupVersion": version, "version": version.partition("/")[2]}
            groups.append({"name": version.partition("/")[0], "versions": [entry], "preferredVersion": entry})
    found["/api"] = {"kind": "APIVersions", "versions": ["v1"]}
    found["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    return found


class KubernetesApi:
    """The address of the API, and the bodies of the changes that were asked for; none is made."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.patches: list[dict[str, Any]] = []


@contextlib.contextmanager
def kubernetes_api(*documents: dict[str, Any]) -> Iterator[KubernetesApi]:
    """Serve these objects, as they are in a cluster."""
    answers = _discovery() | {_path(document): document for document in documents}

    class Handler(BaseHTTPRequestHandler):
        api: ClassVar[KubernetesApi]

        def do_GET(self) -> None:
            self._answer(answers.get(self.path.partition("?")[0]))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.api.patches.append(body)
            self._answer(answers.get(self.path.partition("?")[0]))

        def _answer(self, found: dict[str, Any] | None) -> None:
            status = HTTPStatus.OK if found else HTTPStatus.NOT_FOUND
            failed = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": status}
            body = json.dumps(found or failed).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.api = KubernetesApi(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Handler.api
        finally:
            server.shutdown()
            thread.join()
