"""deploy/helm/dragoman: the objects of kustomize, values that are checked, pools and releases beside each other."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.observe.table import REQUEST_BUCKETS
from tests.certificates import Authority
from tests.container_registry import registry
from tests.deploy.deployed import RULES, loaded, rules
from tests.deploy.helm import CHART, IMAGE, chart_documents, helm, merged, program
from tests.deploy.kubernetes_api import kubernetes_api
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
from tests.key_files import ALICE, write_keys
from tests.servers import REPOSITORY, Serve, dragoman

RUNBOOKS = "https://docs.example.org/runbooks.md"
GATEWAY = {
    "enabled": True,
    "parents": [{"name": "public", "namespace": "gateways"}],
    "hostnames": {"grpc": ["grpc.translate.example.org"], "http": ["translate.example.org"]},
}
INGRESS = {
    "grpc": {"enabled": True, "host": "grpc.translate.example.org", "tlsSecret": "dragoman-ingress-tls"},
    "http": {"enabled": True, "host": "translate.example.org", "tlsSecret": "dragoman-ingress-tls"},
}
NO_ROUTES = {"ingress": {"grpc": {"enabled": False}, "http": {"enabled": False}}, "gateway": {"enabled": False}}
# Each overlay and component as values of the chart.
VALUES: Mapping[str, dict[str, Any]] = {
    "cpu": {},
    "gpu": {"device": "cuda", "memory": "4Gi"},
    "monitoring": {"monitoring": {"monitor": {"by": "pod"}, "rules": {"enabled": True, "runbooks": RUNBOOKS}}},
    "api-keys": {"apiKeys": {"enabled": True}},
    "gateway": {"gateway": GATEWAY, "http": {"enabled": True}},
    "glossaries": {"glossaries": {"configMap": "dragoman-glossaries"}},
    "hpa": {"autoscaling": {"by": "hpa"}},
    "http": {"http": {"enabled": True}},
    "ingress": {"ingress": INGRESS, "http": {"enabled": True}},
    "keda": {"autoscaling": {"by": "keda"}},
    "models": {"models": {"from": "claim"}},
    "models-image-volume": {"models": {"from": "imageVolume", "reference": "registry.invalid/models:1"}},
    "models-store": {"models": {"from": "store", "url": "s3://bucket/models", "secret": "dragoman-models"}},
    "tls": {"tls": {"enabled": True}},
    "tracing": {"tracing": {"enabled": True}},
}
# Routes lead to HTTP, too; and the chart refuses a scaler without metrics.
NEEDS = {"ingress": "http", "gateway": "http", "hpa": "monitoring", "keda": "monitoring"}
_HASH = re.compile(r"-config-[a-z0-9]{10}(?=\")")


def values_of(*names: str) -> dict[str, Any]:
    return merged(*(VALUES[name] for name in names))


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return objects by kind and name, without what each tool does in its own way: the namespace, which Helm's users
    name when they install; Helm's test; how a change of settings rolls pods; addresses of runbooks; orders without a
    meaning."""
    found = {}
    text = json.dumps([document for document in documents if document["kind"] not in ("Namespace", "Pod")])
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


def charted(name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a site of kustomize, and its overlay and components."""
    overlay, *components = SITES[name]
    components += {NEEDS[each] for each in components if each in NEEDS} - set(components)
    return values_of(overlay, *components), [overlay, *components]


@pytest.mark.parametrize("name", SITES)
def test_the_objects_are_those_of_kustomize(name: str, tmp_path: Path) -> None:
    values, parts = charted(name)
    assert by_name(chart_documents(values)) == by_name(render(tmp_path / "site", *parts))


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
        "pools": {"default": {}, "1": {"device": "cuda", "models": store, **NO_ROUTES}},
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


def images(value: Any) -> set[str]:
    """Return all images that an object names, of containers and volumes."""
    if isinstance(value, list):
        return set().union(*map(images, value))
    if not isinstance(value, dict):
        return set()
    own = {str(each) for key, each in value.items() if key in ("image", "reference") and isinstance(each, str)}
    return own.union(*map(images, value.values()))


@pytest.mark.parametrize("name", SITES)
def test_no_image_is_of_another_registry_than_the_sites(name: str) -> None:
    found = images(chart_documents(charted(name)[0]))
    assert {image.partition("/")[0] for image in found} == {"registry.invalid"}


# --- values


@pytest.mark.parametrize(
    ("values", "needs"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"http": {"enabled": True}}, ["secret dragoman-api-keys"], id="HTTP"),
        pytest.param(
            values_of("tls", "api-keys", "glossaries"),
            ["secret dragoman-tls, secret dragoman-api-keys, ConfigMap dragoman-glossaries"],
            id="TLS, keys and glossaries",
        ),
    ],
)
def test_the_notes_name_what_pods_wait_for(values: dict[str, Any], needs: list[str]) -> None:
    stdin = json.dumps(merged(IMAGE, values))
    notes = helm("install", "dragoman", str(CHART), "--dry-run=client", "-f", "-", stdin=stdin).stdout
    assert re.findall(r"^  needs:  ([^;]*);", notes.partition("NOTES:")[2], re.MULTILINE) == needs


def test_every_value_is_in_the_schema_and_in_the_readme() -> None:
    module = loaded(CHART.parent / "write_readme.py")
    assert (CHART / "README.md").read_text() == module.written(), "run python deploy/helm/write_readme.py"
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() == values.keys() | {"global"}
    of_release = {"imagePullSecrets", "monitoring", "nameOverride", "pools", "serviceAccount"}
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
    pools = {"default": {}, "gpu": {**VALUES["gpu"], "settings": {"max_slots": 8}, **NO_ROUTES}}
    values = {**values_of(*TOGETHER, "keda"), "pools": pools}
    default, gpu = site(values, "default"), site(values, "gpu")
    assert (default.deployment["metadata"]["name"], gpu.deployment["metadata"]["name"]) == ("dragoman", "dragoman-gpu")
    assert (default.settings.device, gpu.settings.device) == ("cpu", "cuda")
    assert (default.settings.max_slots, gpu.settings.max_slots) == (0, 8)
    for each in (default, gpu):
        assert [line for line in complaints(each) if "hash of its content" not in line] == []


def test_pools_and_releases_do_not_select_each_others_pods() -> None:
    values = {**values_of(*TOGETHER, "hpa"), "pools": {"default": {}, "b": NO_ROUTES}}
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


@pytest.mark.parametrize(("cpu", "threads"), [(2, 2), ("500m", 1), ("1500m", 2)])
def test_threads_are_the_cpus_rounded_up(cpu: int | str, threads: int) -> None:
    assert site({"cpu": cpu}, "default").settings.num_threads == threads


def test_every_node_that_an_affinity_allows_has_an_architecture_of_the_image() -> None:
    terms: list[dict[str, Any]] = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": []}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {"podAntiAffinity": {required: [{"topologyKey": "kubernetes.io/hostname"}]}}
    values = {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, **spread}}
    affinity = site(values, "default").pod["affinity"]
    found = affinity["nodeAffinity"][required]["nodeSelectorTerms"]
    architecture = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    assert [term["matchExpressions"][-1] for term in found] == [architecture, architecture]
    assert found[0]["matchExpressions"][:-1] == terms[0]["matchExpressions"]
    assert affinity["podAntiAffinity"] == spread["podAntiAffinity"]


def test_what_fetches_models_has_the_volumes_of_the_site() -> None:
    mount = {"name": "ca", "mountPath": "/etc/ca", "readOnly": True}
    own = {"volumes": [{"name": "ca", "configMap": {"name": "ca"}}], "volumeMounts": [mount]}
    for container in site({**VALUES["models"], **own}, "default").containers:
        assert mount in container["volumeMounts"]


def test_labels_of_a_site_are_on_everything_and_select_nothing() -> None:
    documents = chart_documents({"labels": {"team": "search"}, "monitoring": {"monitor": {"by": "service"}}})
    assert [each for each in documents if each["metadata"]["labels"].get("team") != "search"] == []
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["metadata"]["labels"]["team"] == "search"
    selectors = [each["spec"].get("selector", {}) for each in documents if "spec" in each]
    assert "team" not in json.dumps(selectors)


# --- helm test


@pytest.mark.parametrize("features", [(), ("tls",), ("api-keys",), ("tls", "http")])
def test_the_test_translates_at_the_real_server(features: tuple[str, ...], serve: Serve, tmp_path: Path) -> None:
    """With the server's own certificate for the only authority, and a caller's key from the secret."""
    settings: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    if "tls" in features:
        certificate, key = Authority().pair().write(tmp_path)
        settings |= {"tls_certificate": certificate, "tls_key": key}
        variables["DRAGOMAN_TRANSLATE_TLS_CA"] = str(certificate)
    if {"api-keys", "http"} & set(features):
        settings["api_keys"] = write_keys(tmp_path, alice=ALICE)
        variables["DRAGOMAN_API_KEY"] = ALICE
    values = values_of(*features)
    secret = {"test": {"secret": "dragoman-test"}} if "api_keys" in settings else {}
    (pod,) = [each for each in chart_documents(merged(values, secret)) if each["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    assert given.pop("DRAGOMAN_SERVER") == "dragoman.dragoman.svc:50051"
    assert given.keys() | ({"DRAGOMAN_API_KEY"} if "envFrom" in container else set()) == variables.keys()
    server = serve(**settings)
    name, *arguments = container["command"]
    variables["DRAGOMAN_SERVER"] = f"localhost:{server.address.rpartition(':')[2]}"
    answer = dragoman(*arguments, **variables)
    assert name == "dragoman"
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count(b"\n") == 1


@pytest.mark.parametrize("features", [("api-keys",), ("http",), ("tls", "clients")])
def test_there_is_no_test_without_what_a_caller_needs(features: tuple[str, ...]) -> None:
    values = merged(*(VALUES.get(each, {"tls": {"clients": True}}) for each in features))
    assert [each for each in chart_documents(values) if each["kind"] == "Pod"] == []


def test_the_network_policy_lets_the_test_in_and_no_selector_finds_it() -> None:
    documents = chart_documents({"monitoring": {"monitor": {"by": "service"}}})
    (pod,) = [each for each in documents if each["kind"] == "Pod"]
    (policy,) = [each for each in documents if each["kind"] == "NetworkPolicy"]
    labels = pod["metadata"]["labels"].items()
    assert policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"].items() <= labels
    for each in documents:
        selector = each.get("spec", {}).get("selector", {})
        assert not selector or not selector.get("matchLabels", selector).items() <= labels


# --- glossaries


def test_the_server_reads_glossaries_as_kubelet_mounts_them(serve: Serve, tmp_path: Path) -> None:
    """A ConfigMap's files are links into a folder that is replaced as a whole."""

    def mount(version: str, content: str) -> None:
        (tmp_path / version).mkdir()
        (tmp_path / version / "products.en-de.tsv").write_text(content)
        (tmp_path / "..new").symlink_to(version)
        (tmp_path / "..new").rename(tmp_path / "..data")

    mount("..1", "station\tBahnhof\n")
    (tmp_path / "products.en-de.tsv").symlink_to("..data/products.en-de.tsv")
    server = serve(glossaries=tmp_path)
    with server.client() as client:
        (first,) = client.translate(["station"], "en", "de", glossary="products")
        assert first.text == "Bahnhof"
        mount("..2", "station\tHalt\n")
        server.reload()
        (second,) = client.translate(["station"], "en", "de", glossary="products")
        assert second.text == "Halt"


# --- replicas, when an autoscaler takes them over


APPLIED = {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
APPLIED_WITH_REPLICAS = {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
UPDATED = {"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
SCALED = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "scale",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}
STATUS = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "status",
    "fieldsV1": {"f:status": {}},
}


@pytest.mark.parametrize(
    ("owners", "by", "rendered"),
    [
        pytest.param([APPLIED_WITH_REPLICAS, STATUS], "hpa", 6, id="Helm has them: they stay as they are"),
        pytest.param([APPLIED_WITH_REPLICAS, STATUS], "none", 2, id="no autoscaler: the value"),
        pytest.param([APPLIED, SCALED, STATUS], "keda", None, id="the autoscaler has them"),
        pytest.param([UPDATED, STATUS], "hpa", 6, id="without server-side apply"),
        pytest.param([SCALED, STATUS], "hpa", 6, id="without server-side apply, and the autoscaler has them"),
    ],
)
def test_an_autoscaler_takes_over_the_live_number_of_replicas(
    owners: list[dict[str, Any]], by: str, rendered: int | None
) -> None:
    """A field that Helm owned and leaves out would be 1 until the autoscaler has asked Prometheus."""
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "dragoman",
            "namespace": "dragoman",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "dragoman", "meta.helm.sh/release-namespace": "dragoman"},
            "managedFields": owners,
        },
        "spec": {"replicas": 6},
    }
    values = {"monitoring": {"monitor": {"by": "pod"}}, "autoscaling": {"by": by}}
    with kubernetes_api(deployment) as api:
        server = ("--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", api.address)
        documents = chart_documents({**values, "pools": {"default": {}, "new": {}}}, *server)
    specs = {each["metadata"]["name"]: each["spec"] for each in documents if each["kind"] == "Deployment"}
    assert specs["dragoman"].get("replicas") == rendered
    assert specs["dragoman-new"].get("replicas") == (2 if by == "none" else None)  # there is none yet


# --- the guide


def test_the_first_documented_commands(tmp_path: Path) -> None:
    """In docs/kubernetes.md, with programs in place of docker and of an installation, which runs the pushed image."""
    commands, *_ = documented_examples("bash")
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
