"""KServe's objects: their fields, what their containers are, and the real server run as they say."""

import copy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from benchmarks.autoscaling import shipped_query
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from tests.deploy.manifests import quantity, validate
from tests.grpc_calls import infer_request
from tests.http_caller import call
from tests.patience import patient
from tests.servers import REPOSITORY, environment, free_port, http_get, read_line
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations

KSERVE = REPOSITORY / "deploy" / "kserve"


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


def test_the_objects_have_only_fields_that_kserve_knows(runtime: Any, service: Any) -> None:
    for document in (runtime, service, pod_of(runtime)):
        validate(document)


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
        own, http, metrics = (f"127.0.0.1:{port}" for port in ports.values())
        yield own, http, metrics
    finally:
        process.kill()
        process.communicate()


def container_args(runtime: Any) -> list[str]:
    (container,) = runtime["spec"]["containers"]
    return list(container["args"])


def test_the_server_that_it_starts_answers_by_both_protocols(
    runtime: Any, addresses: tuple[str, str, str], tiny_bundle: Path
) -> None:
    own, http, metrics = addresses
    expected = golden_translations(tiny_bundle)[0]
    with grpc.insecure_channel(own) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        outputs = stub.ModelInfer(infer_request(GOLDEN_TEXTS[0]), timeout=patient(30)).outputs
    assert next(each for each in outputs if each.name == "translation").contents.bytes_contents == [expected.encode()]
    body = {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [GOLDEN_TEXTS[0]]}]}
    answer = call(f"http://{http}", "POST", "/v2/models/tiny/infer", body).document
    assert next(each for each in answer["outputs"] if each["name"] == "translation")["data"] == [expected]
    container = runtime["spec"]["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked_of = container[probe]["httpGet"]
        assert asked_of["port"] == "metrics"
        assert http_get(f"http://{metrics}{asked_of['path']}")[0] == 200
    page = http_get(f"http://{metrics}{runtime['spec']['annotations']['prometheus.kserve.io/path']}")[2]
    assert "dragoman_engine_busy_seconds_total" in page
