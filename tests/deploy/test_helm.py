"""deploy/helm/dragoman: the objects of kustomize, values that are checked, pools and releases beside each other."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from service.observe.table import REQUEST_BUCKETS
from tests.container_registry import registry
from tests.deploy.deployed import RULES, loaded, rules
from tests.deploy.helm import CHART, IMAGE, chart_documents, helm, merged, program, refusal
from tests.deploy.manifest_checks import complaints
from tests.deploy.manifests import (
    COMPONENTS,
    GOLDEN,
    KUBERNETES,
    VERSIONS,
    Manifests,
    check_as_reviewed,
    render,
    validate,
)
from tests.deploy.test_kubernetes import SITES, TOGETHER, commands_run, documented_examples
from tests.servers import REPOSITORY

RUNBOOKS = "https://docs.example.org/runbooks.md"
GATEWAY = {
    "enabled": True,
    "parents": [{"name": "public", "namespace": "gateways"}],
    "hostnames": ["translate.example.org"],
}
INGRESS = {"enabled": True, "host": "translate.example.org", "tlsSecret": "dragoman-ingress-tls"}
# Each overlay and component as values of the chart.
VALUES: Mapping[str, dict[str, Any]] = {
    "cpu": {},
    "gpu": {"device": "cuda", "memory": "4Gi"},
    "monitoring": {"monitoring": {"monitor": {"by": "pod"}, "rules": {"enabled": True, "runbooks": RUNBOOKS}}},
    "api-keys": {"apiKeys": {"enabled": True}},
    "gateway": {"gateway": GATEWAY, "http": {"enabled": True}},
    "hpa": {"autoscaling": {"by": "hpa"}},
    "http": {"http": {"enabled": True}},
    "ingress": {"ingress": {"grpc": INGRESS, "http": INGRESS}, "http": {"enabled": True}},
    "keda": {"autoscaling": {"by": "keda"}},
    "models": {"models": {"from": "claim"}},
    "models-image-volume": {"models": {"from": "imageVolume", "reference": "registry.invalid/models:1"}},
    "models-store": {"models": {"from": "store", "url": "s3://bucket/models", "secret": "dragoman-models"}},
    "tls": {"tls": {"enabled": True}},
    "tracing": {"tracing": {"enabled": True}},
}
NEEDS_HTTP = ("ingress", "gateway")  # whose routes lead to HTTP, too
_HASH = re.compile(r"-config-[a-z0-9]{10}(?=\")")


def values_of(*names: str) -> dict[str, Any]:
    return merged(*(VALUES[name] for name in names))


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return objects by kind and name, without what each tool does in its own way: the namespace, which Helm's users
    name when they install; how a change of settings rolls pods; addresses of runbooks; orders without a meaning."""
    found = {}
    text = json.dumps([document for document in documents if document["kind"] != "Namespace"])
    for document in json.loads(_HASH.sub("-config", text).replace(RUNBOOKS, "docs/runbooks.md")):
        document["metadata"].pop("namespace", None)
        if document["kind"] == "ConfigMap":
            document["metadata"].pop("labels", None)
            document["data"] = {name: tomllib.loads(each) for name, each in document["data"].items()}
        if document["kind"] == "Service":
            document["spec"]["ports"].sort(key=_key)
        if document["kind"] == "Deployment":
            template = document["spec"]["template"]
            template["metadata"]["annotations"].pop("checksum/config", None)
            containers = [*template["spec"]["containers"], *template["spec"].get("initContainers", [])]
            lists = [each.get(kind, []) for each in containers for kind in ("env", "ports", "volumeMounts")]
            for listed in (template["spec"]["volumes"], *lists):
                listed.sort(key=_key)
        found[document["kind"], document["metadata"]["name"]] = document
    return found


def _key(entry: Mapping[str, Any]) -> str:
    return str(entry["name"])


def test_every_component_has_values() -> None:
    assert VALUES.keys() == {"cpu", "gpu", "monitoring", *COMPONENTS}


@pytest.mark.parametrize("name", [*SITES, *(f"cpu with {name} and http" for name in NEEDS_HTTP)])
def test_the_objects_are_those_of_kustomize(name: str, tmp_path: Path) -> None:
    overlay, *components = SITES.get(name) or ("cpu", name.split()[2], "http")
    if set(components) & set(NEEDS_HTTP) and "http" not in components:
        components.append("http")
    rendered = by_name(render(tmp_path / "site", overlay, *components))
    assert by_name(chart_documents(values_of(overlay, *components))) == rendered


def test_a_planted_difference_is_seen(tmp_path: Path) -> None:
    rendered = by_name(render(tmp_path / "site", "cpu"))
    assert by_name(chart_documents({"memory": "2Gi"})) != rendered
    assert by_name(chart_documents({"settings": {"cache_mib": 64}})) != rendered


def test_what_kustomize_shares_is_as_written() -> None:
    writer = loaded(KUBERNETES / "write.py")
    for name, content in writer.written(str(program())).items():
        assert (KUBERNETES / name).read_text() == content, "run python deploy/kubernetes/write.py"


def test_rules_are_those_of_prometheus_with_addresses_of_runbooks() -> None:
    (rule,) = [d for d in chart_documents(VALUES["monitoring"]) if d["kind"] == "PrometheusRule"]
    given = [each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each]
    expected = json.dumps(rules("alert", RULES)).replace("docs/runbooks.md", RUNBOOKS)
    assert sorted(given, key=lambda each: each["alert"]) == sorted(json.loads(expected), key=lambda each: each["alert"])
    assert all(each["annotations"]["runbook_url"].startswith(f"{RUNBOOKS}#") for each in given)


def test_rules_have_the_objectives_of_a_site() -> None:
    def recorded(**objectives: float) -> dict[str, str]:
        values = {"enabled": True, "runbooks": RUNBOOKS, "objectives": objectives}
        (rule,) = [d for d in chart_documents({"monitoring": {"rules": values}}) if d["kind"] == "PrometheusRule"]
        groups = rule["spec"]["groups"]
        return {each["record"]: each["expr"] for group in groups for each in group["rules"] if "record" in each}

    plain, own = recorded(), recorded(failed=0.01, slow=0.001, seconds=2.5)
    assert plain == {rule["record"]: rule["expr"] for rule in rules("record", RULES)}
    changed = {name: expression for name, expression in own.items() if expression != plain[name]}
    slow = plain["dragoman:calls_slow:total"].replace('le="1.0"', 'le="2.5"')
    assert changed == {
        "dragoman:objective:failed_ratio": "vector(0.01)",
        "dragoman:objective:slow_ratio": "vector(0.001)",
        "dragoman:objective:slow_seconds": "vector(2.5)",
        "dragoman:calls_slow:total": slow,
    }
    assert recorded(seconds=10)["dragoman:objective:slow_seconds"] == "vector(10.0)"


def test_the_latency_objective_is_one_of_the_buckets() -> None:
    (enum,) = re.findall(r'"seconds": (\{.*?\})', (CHART / "values.schema.json").read_text(), re.DOTALL)
    assert json.loads(enum)["enum"] == list(REQUEST_BUCKETS)


def test_what_kustomize_does_not_have_is_rendered_as_last_reviewed(tmp_path: Path) -> None:
    """Pools of which one looks like a number, monitoring by a Service, a store with a port, dashboards."""
    store = {**VALUES["models-store"]["models"], "port": 9000}
    monitoring = {"monitor": {"by": "service"}, "dashboards": {"enabled": True}}
    values = {
        "monitoring": monitoring,
        "ingress": {"grpc": {"enabled": True, "host": "*.example.org", "tlsSecret": "certificate"}},
        "settings": {"drain_delay_seconds": 0, "grace_seconds": 120.5},
        "tmp": "64Mi",
        "pools": {"default": {}, "1": {"device": "cuda", "models": store}},
    }
    documents = chart_documents(values)
    (dashboard,) = [each for each in documents if "dashboard" in each["metadata"]["name"]]
    (text,) = dashboard.pop("data").values()
    source = REPOSITORY / "deploy" / "grafana" / "dashboards" / "dragoman.json"
    assert json.loads(text) == json.loads(source.read_text())
    check_as_reviewed(documents, GOLDEN / "helm.yaml", tmp_path)
    for document in documents:
        if document["kind"] != "ServiceMonitor":  # whose schema is not here
            validate(document, VERSIONS[-1])


def test_dashboards_link_to_the_runbooks_of_the_rules() -> None:
    documents = chart_documents({"monitoring": {"dashboards": {"enabled": True}, "rules": {"runbooks": RUNBOOKS}}})
    (text,) = [text for each in documents for name, text in each.get("data", {}).items() if name.endswith(".json")]
    (field,) = [each for each in json.loads(text)["templating"]["list"] if each["name"] == "runbooks"]
    assert field["query"] == field["current"]["value"] == RUNBOOKS


# --- Kubernetes and Helm themselves


def test_it_has_no_lint() -> None:
    answer = helm("lint", "--strict", str(CHART), "-f", "-", stdin=json.dumps(IMAGE))
    assert answer.returncode == 0, answer.stdout


def test_an_upgrade_without_changes_changes_nothing() -> None:
    values = values_of(*TOGETHER, "keda")
    assert chart_documents(values) == chart_documents(values, "--is-upgrade")


def test_it_is_pushed_to_a_registry_and_pulled(tmp_path: Path) -> None:
    assert helm("package", str(CHART), "--destination", str(tmp_path)).returncode == 0
    (package,) = tmp_path.glob("*.tgz")
    with registry(tmp_path) as address:
        pushed = helm("push", str(package), f"oci://{address}/charts", "--plain-http")
        assert pushed.returncode == 0, pushed.stderr
        chart = f"oci://{address}/charts/dragoman"
        pulled = chart_documents(VALUES["monitoring"], "--plain-http", chart=chart)
    assert pulled == chart_documents(VALUES["monitoring"])


# --- values


WRONG: tuple[dict[str, Any], ...] = (
    {"replica": 2},
    {"replicas": "2"},
    {"device": "gpu"},
    {"cpu": 1.5},
    {"memory": "1GiB"},
    {"pools": {"big": {"replica": 2}}},
    {"pools": {"Big": {}}},
    {"pools": {"big": {"monitoring": {}}}},
    {"models": {"from": "s3"}},
    {"autoscaling": {"by": "hpa", "minReplicas": 0}},
    {"autoscaling": {"by": "hpa", "targetLoad": 65}},
    {"monitoring": {"monitor": {"by": "prometheus"}}},
)


def test_the_schema_refuses_wrong_values() -> None:
    """One of them by Helm, which reads the schema; the others by the schema itself."""
    assert "'replica' not allowed" in refusal(WRONG[0])
    schema, right = (CHART / "values.schema.json").read_text(), yaml.safe_load((CHART / "values.yaml").read_text())
    validator = jsonschema.validators.validator_for(json.loads(schema))(json.loads(schema))
    assert validator.is_valid(merged(right, IMAGE))
    assert [values for values in WRONG if validator.is_valid(merged(right, IMAGE, values))] == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"image": {"repository": ""}}, "set image.repository: the registry and name of your image"),
        ({"pools": {"default": {}, "headless": {}}}, "choose one without headless"),  # as default's Service
        ({"pools": {"big": {}, "big-http": {}}}, "choose one without -http"),  # as big's policy
        ({"models": {"from": "store"}}, "set models.url"),
        ({"models": {"from": "imageVolume"}}, "set models.reference"),
        ({"maxSurge": 0}, "maxSurge and maxUnavailable are both 0"),
        ({"ingress": {"http": {"enabled": True, "host": "a.example"}}}, "ingress.http needs http.enabled"),
        ({"ingress": {"grpc": {"enabled": True}}}, "set ingress.grpc.host"),
        ({"gateway": {"enabled": True}}, "gateway.enabled needs gateway.parents"),
        ({"monitoring": {"rules": {"enabled": True}}}, "set monitoring.rules.runbooks"),
        ({"settings": {"port": 50052}}, "settings.port is set by the chart; leave it out"),
        ({"settings": {"num_threads": 4}}, "settings.num_threads is set by the chart; set cpu"),
        ({"image": {"repository": "localhost:5000/dragoman:1.2"}}, "set its tag or digest as image.tag"),
        ({"image": {"repository": "localhost/dragoman@sha256:0a"}}, "set its tag or digest as image.tag"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(values: dict[str, Any], told: str) -> None:
    assert told in refusal(values)


@pytest.mark.parametrize(
    ("values", "secrets"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"http": {"enabled": True}}, ["dragoman-api-keys"], id="HTTP"),
        pytest.param(values_of("tls", "api-keys"), ["dragoman-tls, dragoman-api-keys"], id="TLS and keys"),
    ],
)
def test_the_notes_name_secrets_that_pods_wait_for(values: dict[str, Any], secrets: list[str]) -> None:
    stdin = json.dumps(merged(IMAGE, values))
    notes = helm("install", "dragoman", str(CHART), "--dry-run=client", "-f", "-", stdin=stdin).stdout
    assert re.findall(r"^  needs:  secret ([^;]*);", notes.partition("NOTES:")[2], re.MULTILINE) == secrets


def test_image_volumes_are_refused_where_there_are_none() -> None:
    values = VALUES["models-image-volume"]
    assert "which Kubernetes v1.33 does not have by default" in refusal(values, "--kube-version", "1.33")
    assert refusal(values, "--kube-version", "1.36") == ""


def test_every_value_is_in_the_schema_and_in_the_readme() -> None:
    module = loaded(CHART.parent / "write_readme.py")
    assert (CHART / "README.md").read_text() == module.written(), "run python deploy/helm/write_readme.py"
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() == values.keys() | {"global"}
    of_release = {"imagePullSecrets", "monitoring", "pools", "serviceAccount"}
    assert schema["$defs"]["pool"]["properties"].keys() == values.keys() - of_release


# --- pools and releases


def site(values: Mapping[str, Any], pool: str) -> Manifests:
    """Return the objects of one pool, with the namespace that an operator creates."""
    namespace = yaml.safe_load((KUBERNETES / "base" / "namespace.yaml").read_text())
    documents = [d for d in chart_documents(values) if d["metadata"]["labels"].get("dragoman-pool") in (pool, None)]
    for document in documents:
        document["metadata"].setdefault("namespace", "dragoman")
    return Manifests([namespace, *documents])


def test_pools_fit_themselves() -> None:
    pools = {"default": {}, "gpu": {**VALUES["gpu"], "settings": {"max_slots": 8}}}
    values = {**values_of(*TOGETHER, "keda"), "pools": pools}
    default, gpu = site(values, "default"), site(values, "gpu")
    assert (default.deployment["metadata"]["name"], gpu.deployment["metadata"]["name"]) == ("dragoman", "dragoman-gpu")
    assert (default.settings.device, gpu.settings.device) == ("cpu", "cuda")
    assert (default.settings.max_slots, gpu.settings.max_slots) == (0, 8)
    for each in (default, gpu):
        assert [line for line in complaints(each) if "hash of its content" not in line] == []


def test_pools_and_releases_do_not_select_each_others_pods() -> None:
    values = {**values_of(*TOGETHER, "hpa"), "pools": {"default": {}, "b": {}}}
    documents = chart_documents(values) + chart_documents(values, release="dragoman-canary")
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(set(names)) == len(names)
    deployments = [document for document in documents if document["kind"] == "Deployment"]
    pods = [document["spec"]["template"]["metadata"]["labels"] for document in deployments]
    assert len(pods) == 4
    for document in documents:
        spec = document.get("spec", {})
        selector = spec.get("selector", spec.get("podSelector", {}))
        labels = selector.get("matchLabels", selector)
        expected = 2 if document["kind"] == "PodMonitor" else 1
        assert not labels or sum(labels.items() <= each.items() for each in pods) == expected, document


def test_a_change_of_settings_rolls_the_pods() -> None:
    before, after = (site({"settings": {"cache_mib": size}}, "default").deployment for size in (1, 2))
    sums = [each["spec"]["template"]["metadata"]["annotations"]["checksum/config"] for each in (before, after)]
    assert sums[0] != sums[1]


# --- the guide


def test_the_first_documented_commands(tmp_path: Path) -> None:
    """With programs in place of docker and of an installation: what is installed runs the image that was pushed."""
    commands, _ = documented_examples("bash")
    script = f'[ "$1 $2" = "upgrade --install" ] && shift 2 && {program()} template "$@"'
    documents = [each for each in yaml.safe_load_all(commands_run(commands, tmp_path, helm=script)) if each]
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert (tmp_path / "docker.log").read_text().splitlines() == [f"build --tag {image} .", f"push {image}"]


def test_the_documented_values(tmp_path: Path) -> None:
    examples = [yaml.safe_load(text) for text in documented_examples("yaml")]
    values = [example for example in examples if "image" in example]
    readme = re.findall(r"```yaml\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)
    for each in (*values, *map(yaml.safe_load, readme)):
        for document in chart_documents(each):
            if document["kind"] != "ConfigMap" or "config.toml" not in document["data"]:
                validate(document, VERSIONS[-1])
    assert len(values) == 3
    assert site(values[0], "default").settings.cache_mib == 64
    assert site(values[1], "large").settings.device == "cuda"


def test_the_documented_canary_is_a_side_of_the_stable_release() -> None:
    """What there can be only one of, stays with the stable release."""
    (example,) = re.findall(r"```yaml\n(image: .*?)```", (REPOSITORY / "docs" / "canary.md").read_text(), re.DOTALL)
    more = {"monitoring": {"dashboards": {"enabled": True}}, "image": {"digest": "sha256:0a"}}
    stable = merged(values_of("gateway", "monitoring", "keda"), more)
    documents = chart_documents(merged(stable, yaml.safe_load(example)), release="dragoman-canary")
    assert {each["metadata"]["name"].partition("-canary")[0] for each in documents} == {"dragoman"}
    kinds = [each["kind"] for each in documents]
    assert not {"GRPCRoute", "HTTPRoute", "PrometheusRule", "ScaledObject"} & set(kinds)
    assert "PodMonitor" in kinds  # the gate asks for its series
    assert kinds.count("ConfigMap") == 1  # no second dashboard
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith("/dragoman:NEW")
