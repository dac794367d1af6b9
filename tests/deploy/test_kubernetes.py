"""deploy/kubernetes: every combination of components is valid, consistent, and matches the real server."""

import copy
import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from service.observe.metrics import Metrics
from tests.deploy.kubernetes_api import kubernetes_api
from tests.deploy.manifest_checks import complaints
from tests.deploy.manifests import (
    COMPONENTS,
    CONFIG_VARIABLE,
    CUSTOM,
    GOLDEN,
    KUBERNETES,
    PREFIX,
    VERSIONS,
    Manifests,
    check_as_reviewed,
    kubectl,
    kustomize,
    quantity,
    render,
    validate,
)
from tests.doc_blocks import blocks_in
from tests.gate import Gate
from tests.patience import patient
from tests.servers import REPOSITORY, Serve, distinct_texts, dragoman, environment, eventually

GUIDE = REPOSITORY / "docs" / "kubernetes.md"
# All components can be combined, but for scalers, of which there is one, and places that models come from.
ALONE = ("hpa", "keda", "models-image-volume", "models-store")
TOGETHER = tuple(component for component in COMPONENTS if component not in ALONE)
SITES = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "monitoring": ("monitoring",),
    "cpu with all and hpa": ("cpu", *TOGETHER, "hpa"),
    "gpu with all and keda": ("gpu", *TOGETHER, "keda"),
    **{f"cpu with {component}": ("cpu", component) for component in COMPONENTS if component != "monitoring"},
}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """Return a function that renders one of `SITES`; the caller may modify the documents."""
    folder = tmp_path_factory.mktemp("sites")

    @functools.cache
    def once(name: str) -> list[dict[str, Any]]:
        return render(folder / re.sub(r"\W", "_", name), *SITES[name])

    return lambda name: copy.deepcopy(once(name))


Rendered = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def site(rendered: Rendered) -> Manifests:
    """Return the CPU overlay without changes."""
    return Manifests(rendered("cpu"))


@pytest.mark.parametrize("name", SITES)
def test_a_site_fits_itself_and_the_server(name: str, rendered: Rendered) -> None:
    assert complaints(Manifests(rendered(name))) == []


# --- schemas


def distinct_documents(rendered: Rendered) -> list[dict[str, Any]]:
    found = {json.dumps(document, sort_keys=True): document for name in SITES for document in rendered(name)}
    return list(found.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_document(version: str, rendered: Rendered) -> None:
    documents = [document for document in distinct_documents(rendered) if document["kind"] not in CUSTOM]
    assert {"Deployment", "HorizontalPodAutoscaler", "NetworkPolicy"} <= {document["kind"] for document in documents}
    for document in documents:
        validate(document, version)


def test_operators_take_their_documents(rendered: Rendered) -> None:
    documents = [document for document in distinct_documents(rendered) if document["kind"] in CUSTOM]
    kinds = {"GRPCRoute", "HTTPRoute", "PodMonitor", "PrometheusRule", "ScaledObject"}
    assert {document["kind"] for document in documents} == kinds
    for document in documents:
        validate(document)


@pytest.mark.parametrize(
    ("kind", "fault", "told"),
    [
        ("Deployment", lambda d: d["spec"]["template"]["spec"].update(gracePeriod=90), "gracePeriod"),
        ("PodMonitor", lambda d: d["spec"]["podMetricsEndpoints"][0].update(intervall="15s"), "intervall"),
        ("ScaledObject", lambda d: d["spec"]["triggers"][0]["metadata"].update(threshold=0.2), "0.2 is not of type"),
        ("PrometheusRule", lambda d: d["spec"]["groups"].append({"name": "a", "rules": [{"alert": "A"}]}), "'expr'"),
    ],
)
def test_schemas_see_planted_faults(kind: str, fault: Callable[[Any], object], told: str, rendered: Rendered) -> None:
    name = "gpu with all and keda"
    document = next(document for document in rendered(name) if document["kind"] == kind)
    fault(document)
    with pytest.raises(jsonschema.ValidationError, match=re.escape(told)):
        validate(document)


def test_objects_are_rendered_as_last_reviewed(rendered: Rendered, tmp_path: Path) -> None:
    """Who may connect, run and read what is in this file, which a change of the manifests changes too."""
    sites = [rendered("cpu with all and hpa"), rendered("gpu with all and keda")]
    documents = [*sites[0], *(document for document in sites[1] if document not in sites[0])]
    documents = [each for each in documents if each["kind"] != "PrometheusRule"]
    check_as_reviewed(documents, GOLDEN / "kubernetes.yaml", tmp_path)


# --- what neither of them sees


def replace_setting(site: Manifests, old: str, new: str) -> None:
    data = site.config_map["data"]
    assert old in data["config.toml"]
    data["config.toml"] = data["config.toml"].replace(old, new)


# One for each check.
FAULTS: tuple[tuple[Callable[[Manifests], object], str], ...] = (
    (lambda site: site.of("Service")[0]["spec"].update(selector={"a": "b"}), r"selects \{'a': 'b'\}"),
    (lambda site: replace_setting(site, '\nhost = "0.0.0.0"', ""), "listens for grpc on '127.0.0.1'"),
    (lambda site: site.pod["volumes"].append({"name": "spare", "emptyDir": {}}), "volumes are .*'spare'"),
    (lambda site: replace_setting(site, "grace_seconds", "grace_secs"), "refuses its settings .* grace_secs"),
    (lambda site: replace_setting(site, "drain_delay_seconds = 10\n", ""), "takes calls for 0 s; balancers need 5 s"),
)


@pytest.mark.parametrize(("fault", "told"), FAULTS, ids=[told for _, told in FAULTS])
def test_planted_faults_are_named(fault: Callable[[Manifests], object], told: str, rendered: Rendered) -> None:
    documents = rendered("cpu with all and hpa")
    fault(Manifests(documents))
    found = complaints(Manifests(documents))
    assert any(re.search(told, complaint) for complaint in found), found


def test_images_agree_with_the_pods(rendered: Rendered) -> None:
    """The users match; and variables of an image override the settings file, so both must agree."""
    text = (REPOSITORY / "Dockerfile").read_text()
    site = Manifests(rendered("gpu"))
    settings, user = site.settings, site.pod["securityContext"]["runAsUser"]
    assert {each.split(":")[0] for each in re.findall(r"^USER (\S+)", text, re.MULTILINE)} == {str(user)}
    variables = re.findall(rf"\b{PREFIX}([A-Z_]+)=(\S+)", text)
    assert variables
    for name, value in variables:
        if PREFIX + name == CONFIG_VARIABLE:
            continue  # also the path of the pods' ConfigMap
        assert str(getattr(settings, name.lower())) == value


# --- the real server


def test_the_server_reads_file_and_environment_as_rendered(rendered: Rendered, tmp_path: Path) -> None:
    site = Manifests(rendered("gpu with all and keda"))
    file = tmp_path / "config.toml"
    file.write_text(site.config_map["data"]["config.toml"])
    variables: Any = site.variables | {CONFIG_VARIABLE: str(file)}
    answer = dragoman("config", "--json", **variables)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["grace_seconds"] == {"value": site.settings.grace_seconds, "source": f"file {file}"}
    assert told["num_threads"] == {"value": 2, "source": "environment DRAGOMAN_SERVE_NUM_THREADS"}
    assert told["tls_key"]["value"] == str(site.settings.tls_key)


def test_probes_of_the_real_server(site: Manifests, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first port to the last answer; a draining pod is never killed by its probes."""
    server = serve(load=False, max_slots=2, grace_seconds=25.0)

    def answers() -> list[int]:
        probes = ("startupProbe", "readinessProbe", "livenessProbe")
        return [server.get(site.server[probe]["httpGet"]["path"])[0] for probe in probes]

    assert answers() == [503, 503, 200]
    server.load()
    assert answers() == [200, 200, 200]
    gate = Gate(server, monkeypatch)
    with ThreadPoolExecutor() as threads, server.client() as client:
        call = threads.submit(client.translate, distinct_texts(30), "en", "de")
        gate.wait()
        closing = server.start_closing()
        eventually(lambda: server.metric("dragoman_draining") == 1)
        assert answers() == [503, 503, 200]
        gate.open()
        assert len(call.result(patient(30))) == 30
        closing.result(patient(30))


def metric_names() -> set[str]:
    """Return the names of the server's metrics as used in queries."""
    text = Metrics().render("")[0].decode()
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    ends = {"histogram": ("_bucket", "_sum", "_count")}
    return {name + end for name, kind in families for end in ends.get(kind, ("",))}


def test_both_scalers_ask_the_same(rendered: Rendered) -> None:
    (rule,) = yaml.safe_load((KUBERNETES / "components" / "hpa" / "prometheus_adapter.yaml").read_text())[
        "externalRules"
    ]
    (scaler,) = Manifests(rendered("cpu with hpa")).of("HorizontalPodAutoscaler")
    (scaled,) = Manifests(rendered("cpu with keda")).of("ScaledObject")
    (metric,), (trigger,) = scaler["spec"]["metrics"], scaled["spec"]["triggers"]
    assert metric["external"]["metric"]["name"] == rule["name"]["as"]
    labels = {"namespace": "dragoman", **metric["external"]["metric"]["selector"]["matchLabels"]}
    given = ",".join(f'{name}="{value}"' for name, value in labels.items())
    assert rule["metricsQuery"].replace("<<.LabelMatchers>>", given) == trigger["metadata"]["query"]
    assert set(re.findall(r"dragoman_\w+", rule["metricsQuery"])) <= metric_names()
    assert Decimal(trigger["metadata"]["threshold"]) == quantity(metric["external"]["target"]["averageValue"])
    behavior = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert scaler["spec"]["behavior"] == behavior


def test_series_have_the_name_of_their_deployment(rendered: Rendered) -> None:
    (monitor,) = Manifests(rendered("monitoring")).of("PodMonitor")
    relabeling, pool = monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]
    assert (relabeling["targetLabel"], pool["targetLabel"]) == ("deployment", "pool")
    assert pool["sourceLabels"] == ["__meta_kubernetes_pod_label_dragoman_pool"]
    for replica_set, deployment in {"dragoman-7c5ddbdf54": "dragoman", "dragoman-b-6b8c9d7f4": "dragoman-b"}.items():
        assert re.fullmatch(relabeling["regex"], replica_set).group(1) == deployment  # type: ignore[union-attr]


def test_keda_in_another_namespace_asks_for_its_own(tmp_path: Path) -> None:
    """As the documentation says: the site repeats the component's first replacement."""
    component = yaml.safe_load((KUBERNETES / "components" / "keda" / "kustomization.yaml").read_text())
    first = component["replacements"][0]
    assert yaml.safe_load(documented_examples("yaml")[-1])["replacements"] == [first]
    root = os.path.relpath(KUBERNETES, tmp_path.resolve())
    site = {
        "namespace": "translation",
        "resources": [f"{root}/overlays/cpu"],
        "components": [f"{root}/components/keda"],
        "replacements": [first],
    }
    site = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", **site}
    assert complaints(Manifests(kustomize(tmp_path, site))) == []


def test_the_documented_command_lets_go_of_replicas(rendered: Rendered, tmp_path: Path) -> None:
    """A field that was applied, and that is left out, is removed: a live 6 would become 1."""
    (command,) = re.findall(r'^KUBE_EDITOR="(.*)" kubectl (.*)$', GUIDE.read_text(), re.MULTILINE)
    (before, after) = (Manifests(rendered(name)).deployment for name in ("cpu", "cpu with hpa"))
    deployment = copy.deepcopy(before)
    deployment["spec"]["replicas"] = 6
    applied = deployment["metadata"].setdefault("annotations", {})
    applied["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(before)

    with kubernetes_api(deployment) as api:

        def change(*arguments: str) -> dict[str, Any]:
            answer = subprocess.run(
                [str(kubectl()), "--server", api.address, *arguments, "--validate=false"],
                input=json.dumps(after),
                capture_output=True,
                text=True,
                timeout=patient(60),
                env=os.environ | {"KUBE_EDITOR": command[0], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
            )
            assert answer.returncode == 0, answer.stderr
            return api.patches.pop()

        assert change("apply", "--filename", "-")["spec"]["replicas"] is None
        applied |= change(*command[1].split())["metadata"]["annotations"]
        assert "spec" not in change("apply", "--filename", "-")


# --- other files


def test_the_client_configuration_retries_what_a_stop_may_lose() -> None:
    config = json.loads((REPOSITORY / "deploy" / "client" / "service_config.json").read_text())
    assert config["loadBalancingConfig"] == [{"round_robin": {}}]
    (method,) = config["methodConfig"]
    assert set(method["retryPolicy"]["retryableStatusCodes"]) == {"UNAVAILABLE", "CANCELLED"}
    assert 1 < method["retryPolicy"]["maxAttempts"] <= 5  # gRPC's maximum
    named = {entry["service"] for entry in method["name"]}
    assert named <= set(_services())
    assert config["healthCheckConfig"]["serviceName"] in named


def documented_examples(language: str) -> list[str]:
    """Return the examples in a language in docs/kubernetes.md, but for commands that need a real cluster."""
    return [each.text for each in blocks_in(GUIDE.read_text()) if each.language == language and each.mark != "not run"]


def commands_run(commands: str, folder: Path, **programs: str) -> str:
    """Run commands of the documentation with these scripts in place of programs, and return what they print."""
    (folder / "deploy").symlink_to(REPOSITORY / "deploy")
    for name, script in {"docker": 'echo "$@" >> docker.log', **programs}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    answer = subprocess.run(
        ["bash", "-ec", commands],
        capture_output=True,
        text=True,
        timeout=patient(60),
        cwd=folder,
        env=os.environ | path,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_documented_commands_of_kustomize(tmp_path: Path) -> None:
    _, commands, _ = documented_examples("bash")
    script = f'[ "$1 $2" = "apply --kustomize" ] && {kubectl()} kustomize "$3"'
    site = Manifests(list(yaml.safe_load_all(commands_run(commands, tmp_path, kubectl=script))))
    assert complaints(site) == []
    assert site.server["image"] == "registry.example/team/dragoman:cpu"


def test_the_documented_client(serve: Serve) -> None:
    (example,) = documented_examples("python")
    documented = "dns:///dragoman-headless.dragoman.svc:50051"
    assert documented in example
    example = example.replace(documented, f"ipv4:{serve().address}")
    command = [sys.executable, "-c", example]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=patient(60), cwd=REPOSITORY, env=environment()
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("\n") == 1


def test_the_documented_site(rendered: Rendered, tmp_path: Path) -> None:
    example = documented_examples("yaml")[-2]
    (tmp_path / "dragoman").symlink_to(REPOSITORY)
    (tmp_path / "config.toml").write_text((KUBERNETES / "base" / "config.toml").read_text() + "cache_mib = 64\n")
    documents = kustomize(tmp_path, yaml.safe_load(example))
    site = Manifests(documents)
    assert complaints(site) == []
    assert site.server["image"] == "registry.example/dragoman:cuda"
    assert site.settings.cache_mib == 64
    for kind in ("PodMonitor", "PrometheusRule"):
        (found,) = [each for each in documents if each["kind"] == kind]
        assert found["metadata"]["labels"]["release"] == "kube-prometheus-stack"


def _services() -> list[str]:
    found = []
    for path in sorted((REPOSITORY / "proto").rglob("*.proto")):
        text = path.read_text()
        package = re.search(r"^package (\S+);", text, re.MULTILINE)
        names = re.findall(r"^service (\w+)", text, re.MULTILINE)
        found += [f"{package.group(1)}.{name}" for name in names if package]
    return found
