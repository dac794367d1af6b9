"""KServe's objects: their fields, what their containers are, and the real server run as they say.

The controller's own schemas have megabytes. Those here are strict, and know the fields that the objects use, by the
names and types of KServe 0.21's API; the containers are validated by Kubernetes' schema.
"""

import copy
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.autoscaling import shipped_query
from tests.deploy.manifests import quantity
from tests.patience import patient
from tests.servers import REPOSITORY, environment, free_port, http_get, read_line
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations

KSERVE = REPOSITORY / "deploy" / "kserve"
KUBERNETES = "1.32"


class Strict(BaseModel):
    """Fields that it does not know are refused; those with a default may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Metadata(Strict):
    name: str
    annotations: dict[str, str] = {}


class SupportedModelFormat(Strict):
    name: str
    version: str
    autoSelect: bool = False  # noqa: N815  # KServe's own names


class RuntimeSpec(Strict):
    annotations: dict[str, str] = {}
    supportedModelFormats: list[SupportedModelFormat]  # noqa: N815
    protocolVersions: list[Literal["v1", "v2", "grpc-v1", "grpc-v2"]]  # noqa: N815
    multiModel: bool  # noqa: N815
    containers: list[dict[str, Any]]
    volumes: list[dict[str, Any]] = []


class ServingRuntime(Strict):
    apiVersion: Literal["serving.kserve.io/v1alpha1"]  # noqa: N815
    kind: Literal["ServingRuntime"]
    metadata: Metadata
    spec: RuntimeSpec


class ModelFormat(Strict):
    name: str


class ModelSpec(Strict):
    modelFormat: ModelFormat  # noqa: N815
    runtime: str
    protocolVersion: Literal["v1", "v2", "grpc-v1", "grpc-v2"]  # noqa: N815
    storageUri: str  # noqa: N815
    resources: dict[Literal["requests", "limits"], dict[str, str]]


class ExternalMetric(Strict):
    backend: Literal["prometheus", "graphite"]
    serverAddress: str  # noqa: N815
    query: str


class Target(Strict):
    type: Literal["Value", "AverageValue", "Utilization"]
    value: str  # the controller reads no other field of an external metric, and fails without


class External(Strict):
    metric: ExternalMetric
    target: Target


class Metric(Strict):
    type: Literal["External"]
    external: External


class AutoScaling(Strict):
    metrics: list[Metric]
    behavior: dict[Literal["scaleUp", "scaleDown"], dict[Literal["stabilizationWindowSeconds"], int]]


class Predictor(Strict):
    minReplicas: int  # noqa: N815
    maxReplicas: int  # noqa: N815
    terminationGracePeriodSeconds: int  # noqa: N815
    model: ModelSpec
    autoScaling: AutoScaling  # noqa: N815


class ServiceSpec(Strict):
    predictor: Predictor


class InferenceService(Strict):
    apiVersion: Literal["serving.kserve.io/v1beta1"]  # noqa: N815
    kind: Literal["InferenceService"]
    metadata: Metadata
    spec: ServiceSpec


def read(name: str) -> Any:
    return yaml.safe_load((KSERVE / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def runtime() -> Any:
    return read("serving_runtime")


@pytest.fixture
def service() -> Any:
    return read("inference_service")


def pod_of(runtime: Any) -> dict[str, Any]:
    """Return a pod with the containers that KServe would start: of the runtime, with the models mounted."""
    spec = copy.deepcopy({name: runtime["spec"][name] for name in ("containers", "volumes")})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "predictor"}, "spec": spec}


def validate(runtime: Any, service: Any) -> None:
    ServingRuntime.model_validate(runtime)
    InferenceService.model_validate(service)
    kubernetes_validate.validate(pod_of(runtime), KUBERNETES, strict=True)


def test_the_objects_have_only_fields_that_kserve_knows(runtime: Any, service: Any) -> None:
    validate(runtime, service)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (lambda r, s: r["spec"].update(multiModle=False), "multiModle"),
        (lambda r, s: r["spec"].update(protocolVersions=["v3"]), "protocolVersions"),
        (lambda r, s: r["spec"]["supportedModelFormats"][0].update(version=1), "version"),
        (lambda r, s: s["spec"]["predictor"]["model"].pop("storageUri"), "storageUri"),
        (lambda r, s: s["spec"]["predictor"].update(replicas=3), "replicas"),
        (
            lambda r, s: s["spec"]["predictor"]["autoScaling"]["metrics"][0]["external"].update(
                target={"type": "AverageValue", "averageValue": "0.65"}
            ),
            "value",
        ),
        (lambda r, s: r["spec"]["containers"][0].update(portz=[]), "portz"),
    ],
)
def test_planted_faults_are_seen(fault: Callable[[Any, Any], object], told: str, runtime: Any, service: Any) -> None:
    fault(runtime, service)
    with pytest.raises((ValidationError, kubernetes_validate.utils.ValidationError), match=told):
        validate(runtime, service)


def test_service_and_runtime_belong_together(runtime: Any, service: Any) -> None:
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["modelFormat"]["name"] == runtime["spec"]["supportedModelFormats"][0]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    (container,) = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container"  # KServe looks for that name
    first, *others = container["ports"]
    assert first["name"] == "http"  # as model.protocolVersion says of port 80
    assert "grpc" in {port["name"] for port in others}  # by which KServe marks it as HTTP/2
    assert quantity(model["resources"]["requests"]["cpu"]) >= 1


def test_the_grace_period_is_long_enough(runtime: Any, service: Any) -> None:
    given = dict(each.removeprefix("--").split("=") for each in runtime["spec"]["containers"][0]["args"] if "=" in each)
    needed = float(given["drain-delay-seconds"]) + float(given["grace-seconds"]) + 10
    assert service["spec"]["predictor"]["terminationGracePeriodSeconds"] > needed


def test_replicas_scale_by_the_query_of_all_deployments(service: Any) -> None:
    name = service["metadata"]["name"]
    metric = service["spec"]["predictor"]["autoScaling"]["metrics"][0]["external"]["metric"]
    expected = shipped_query().replace(
        'namespace="dragoman",deployment="dragoman"', f'namespace="default",deployment="{name}-predictor"'
    )
    assert metric["query"] == expected, "copy the query of KEDA's ScaledObject, with these two labels"
    monitor = read("pod_monitor")["spec"]
    assert monitor["selector"]["matchLabels"]["serving.kserve.io/inferenceservice"] == name
    assert any(each["targetLabel"] == "deployment" for each in monitor["podMetricsEndpoints"][0]["relabelings"])


_ASK = """
import sys, numpy, tritonclient.grpc as triton
client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_ready() and client.is_model_ready(sys.argv[2])
text = triton.InferInput("text", [1], "BYTES")
text.set_data_from_numpy(numpy.array([sys.argv[3].encode()], dtype=object))
print(client.infer(sys.argv[2], [text]).as_numpy("translation")[0].decode())
"""


@pytest.fixture
def addresses(runtime: Any, tiny_models: Path, tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    """Run the container's arguments with the models where the storage initializer puts them, on free ports."""
    models = tmp_path / "mnt" / "models"
    shutil.copytree(tiny_models, models)  # what storageUri holds
    ports = {"--port": free_port(), "--http-port": free_port(), "--metrics-port": free_port()}
    args = [
        each.replace("/mnt/models", str(models)).replace("0.0.0.0", "127.0.0.1") for each in container_args(runtime)
    ]
    args += [f"{flag}={port}" for flag, port in ports.items()]
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "serve", *args, "--admin-port=-1"],
        cwd=REPOSITORY,
        env=environment() | {"DRAGOMAN_SERVE_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "is ready" in read_line(process)
        grpc, http, metrics = (f"127.0.0.1:{port}" for port in ports.values())
        yield grpc, http, metrics
    finally:
        process.kill()
        process.communicate()


def container_args(runtime: Any) -> list[str]:
    (container,) = runtime["spec"]["containers"]
    return list(container["args"])


def test_the_server_that_it_starts_answers_by_both_protocols(
    runtime: Any, addresses: tuple[str, str, str], tiny_bundle: Path
) -> None:
    grpc, http, metrics = addresses
    expected = golden_translations(tiny_bundle)[0]
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, grpc, "tiny", GOLDEN_TEXTS[0]],
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert asked.stdout.removesuffix("\n") == expected, asked.stderr
    body = {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [GOLDEN_TEXTS[0]]}]}
    request = urllib.request.Request(f"http://{http}/v2/models/tiny/infer", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=patient(30)) as response:
        answer = json.load(response)
    assert next(each for each in answer["outputs"] if each["name"] == "translation")["data"] == [expected]
    container = runtime["spec"]["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked_of = container[probe]["httpGet"]
        assert asked_of["port"] == "metrics"
        assert http_get(f"http://{metrics}{asked_of['path']}")[0] == 200
    page = http_get(f"http://{metrics}{runtime['spec']['annotations']['prometheus.kserve.io/path']}")[2]
    assert "dragoman_engine_busy_seconds_total" in page
