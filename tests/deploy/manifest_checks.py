"""What Kubernetes' schemas do not check: whether the parts of a rendered site match each other and the server.

Each check yields complaints of one line each, with the object's name and what is wrong with it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.deploy.manifests import PREFIX, Manifests, quantity

Complaints = Iterator[str]

USER = 10001  # the image's user
# With a registry: without one it would be Docker Hub's, where this project has no image.
IMAGE = re.compile(r"[^/]*[.:][^/]*/([^/]+/)*dragoman:(cpu|cuda)")
CLIENT_LABELS = {"dragoman-client": "true"}  # docs/kubernetes.md asks owners of clients to set them
PROBES = {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"}
SECRET_KEYS = {"dragoman-tls": {"tls.crt", "tls.key", "ca.crt"}, "dragoman-api-keys": {"keys.toml"}}
# The server's needs beyond drain delay and grace: its last answers (2 s), the end of engines and process.
STOP_MARGIN_SECONDS = 10
# The time until every node and proxy knows that a pod is stopping. Kubernetes guarantees no bound; a few seconds are
# usual.
ENDPOINTS_SECONDS = 5
_RESTRICTED_VOLUMES = {"configMap", "emptyDir", "image", "persistentVolumeClaim", "projected", "secret"}


def selectors(site: Manifests) -> Complaints:
    """Check that all selectors meant for the pods match them, and that clients need not carry the pods' own labels."""
    labels = site.pod_labels
    chosen = [(site.deployment, site.deployment["spec"]["selector"]["matchLabels"])]
    chosen += [(document, document["spec"]["selector"]) for document in site.of("Service")]
    for kind in ("PodDisruptionBudget", "PodMonitor"):
        chosen += [(document, document["spec"]["selector"]["matchLabels"]) for document in site.of(kind)]
    for policy in site.of("NetworkPolicy"):
        chosen.append((policy, policy["spec"]["podSelector"].get("matchLabels", {})))
    for spread in site.pod["topologySpreadConstraints"]:
        chosen.append((site.deployment, spread["labelSelector"]["matchLabels"]))
    for document, selector in chosen:
        if not selector or not selector.items() <= labels.items():
            yield f"{_name(document)} selects {selector}, which the pods' labels {labels} do not match"


def doors(site: Manifests) -> Complaints:
    """Check that network policies admit clients where calls are answered, scrapers at the metrics port, and nothing
    else."""
    policies = site.of("NetworkPolicy")
    types = {kind for policy in policies for kind in policy["spec"]["policyTypes"]}
    if types != {"Ingress", "Egress"}:
        yield f"network policies cover {sorted(types)}; what they do not name is open to all"
    rules = [rule for policy in policies for rule in policy["spec"].get("ingress", ())]
    for rule in rules:
        if not rule.get("from") or not rule.get("ports"):
            yield f"a network policy lets everybody in: {rule}"
    admitted = {
        port["port"]: [peer.get("podSelector", peer.get("namespaceSelector"))["matchLabels"] for peer in rule["from"]]
        for rule in rules
        for port in rule.get("ports", ())
        if rule.get("from")
    }
    for door in ("grpc", "http") if site.settings.http_port >= 0 else ("grpc",):
        if CLIENT_LABELS not in admitted.get(door, []):
            yield f"no network policy lets pods labelled {CLIENT_LABELS} in at {door}; it lets in {admitted}"
    if "metrics" not in admitted:
        yield f"no network policy lets scrapers in at metrics; it lets in {admitted}"
    endpoint = site.settings.otlp_endpoint
    egress = {port["port"] for p in policies for rule in p["spec"].get("egress", ()) for port in rule["ports"]}
    if endpoint and not {int(endpoint.rsplit(":", 1)[1]), 53} <= egress:
        yield f"no network policy lets spans out to {endpoint}, and questions to DNS; it lets out to {sorted(egress)}"


def ports(site: Manifests) -> Complaints:
    """Check that every port named is one of the server's, and that the server listens there on all addresses."""
    settings = site.settings
    listened = {
        "grpc": (settings.host, settings.port),
        "http": (settings.http_host, settings.http_port),
        "metrics": (settings.metrics_host, settings.metrics_port),
    }
    for port in site.server["ports"]:
        host, number = listened.get(port["name"], ("", 0))
        if port["containerPort"] != number:
            yield f"port {port['name']} is {port['containerPort']}, but the server listens on {listened}"
        if host != "0.0.0.0":
            yield f"the server listens for {port['name']} on {host!r}, which nobody outside of the pod reaches"
    if settings.http_port >= 0 and settings.api_keys is None:
        yield "calls over HTTP need no key"
    if settings.admin_host != "127.0.0.1":
        yield f"the admin listener is on {settings.admin_host}; it has no authentication and stays in the pod"
    users = [(_name(document), port["targetPort"]) for document in site.of("Service") for port in _ports(document)]
    users += [(probe, site.server[probe]["httpGet"]["port"]) for probe in PROBES if probe in site.server]
    for policy in site.of("NetworkPolicy"):
        rules = policy["spec"].get("ingress", ())
        users += [(_name(policy), port["port"]) for rule in rules for port in rule.get("ports", ())]
    for monitor in site.of("PodMonitor"):
        users += [(_name(monitor), endpoint["port"]) for endpoint in monitor["spec"]["podMetricsEndpoints"]]
    names = {port["name"] for port in site.server["ports"]}
    for user, name in users:
        if name not in names:
            yield f"{user} wants port {name!r}; the server has {sorted(names)}"


def probes(site: Manifests) -> Complaints:
    """Check that each probe requests the path for its purpose."""
    for probe, path in PROBES.items():
        asked = site.server.get(probe, {}).get("httpGet", {}).get("path")
        if asked != path:
            yield f"{probe} asks for {asked!r}; it must ask for {path!r}"


def mounts(site: Manifests) -> Complaints:
    """Check that mounts and volumes match, and that files named in settings are in something mounted."""
    volumes = {volume["name"]: volume for volume in site.pod["volumes"]}
    config_maps = {document["metadata"]["name"] for document in site.of("ConfigMap")}
    used = set()
    for container in site.containers:
        for mount in container.get("volumeMounts", ()):
            used.add(mount["name"])
            if mount["name"] not in volumes:
                yield f"{container['name']} mounts {mount['name']!r}; there is no such volume"
            if "subPath" in mount:
                yield f"{container['name']} mounts {mount['name']!r} by a subPath, which never follows a change"
    for name, volume in volumes.items():
        if name not in used:
            yield f"no container mounts volume {name!r}"
        config_map = volume.get("configMap", {}).get("name")
        if config_map is not None and config_map not in config_maps:
            yield f"volume {name!r} wants ConfigMap {config_map!r}; there is {sorted(config_maps)}"
        if config_map == "dragoman-config":
            yield "the ConfigMap's name has no hash of its content, so a change would not roll the pods"
    settings = site.settings
    for path in (settings.tls_certificate, settings.tls_key, settings.tls_client_ca, settings.api_keys):
        if path is None:
            continue
        mount = next((m for m in site.server["volumeMounts"] if m["mountPath"] == str(path.parent)), None)
        secret = volumes.get(mount["name"], {}).get("secret", {}).get("secretName") if mount else None
        if secret is None or path.name not in SECRET_KEYS.get(secret, ()):
            yield f"a setting names {path}; there lies the secret {secret!r}, without that key"
    if str(settings.models) != "/models":
        yield f"models are looked for in {settings.models}; image and volumes have them in /models"


def resources(site: Manifests) -> Complaints:
    """Check that memory requests equal limits, each thread has a CPU requested, and a GPU is present if used."""
    for container in site.containers:
        name, given = container["name"], container["resources"]
        amounts: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
        for side in amounts:
            for resource, written in given.get(side, {}).items():
                try:
                    amounts[side][resource] = quantity(written)
                except ValueError as error:
                    yield f"{name} has a wrong {side[:-1]} of {resource}: {error}"
        requests, limits = amounts["requests"], amounts["limits"]
        if "memory" not in limits or requests.get("memory") != limits["memory"]:
            yield f"{name} requests memory of {requests.get('memory')} and may use {limits.get('memory')}: not the same"
        if "cpu" not in requests:
            yield f"{name} requests no CPU"
        for resource in requests.keys() & limits.keys():
            if requests[resource] > limits[resource]:
                yield f"{name} requests more {resource} than its limit"
    settings, given = site.settings, site.server["resources"]
    if settings.num_threads != quantity(given["requests"].get("cpu", 0)):
        yield f"the server has {settings.num_threads} threads and requests {given['requests'].get('cpu')} CPUs"
    if (settings.device == "cuda") != ("nvidia.com/gpu" in given["limits"]):
        yield f"the device is {settings.device}, and the limits are {given['limits']}"


def security(site: Manifests) -> Complaints:
    """Check for Pod Security Standard `restricted`, read-only root, the image's user, no service account token."""
    pod, context = site.pod, site.pod.get("securityContext", {})
    user, group = context.get("runAsUser"), context.get("fsGroup")
    if user != USER or context.get("runAsGroup") != USER or group != USER or context.get("runAsNonRoot") is not True:
        yield f"the pod runs as user {user} and group {group}; the image is made for {USER}, who is not root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "the pod has no seccomp profile RuntimeDefault"
    for key in ("hostNetwork", "hostPID", "hostIPC", "hostUsers"):
        if pod.get(key):
            yield f"the pod sets {key}"
    for volume in pod["volumes"]:
        if not (volume.keys() - {"name"}) <= _RESTRICTED_VOLUMES:
            yield f"volume {volume['name']!r} is of a kind that `restricted` does not allow"
    accounts = site.of("ServiceAccount")
    if pod.get("serviceAccountName") not in {account["metadata"]["name"] for account in accounts}:
        yield f"the pod's service account is {pod.get('serviceAccountName')!r}, which is not there"
    if any(thing.get("automountServiceAccountToken") is not False for thing in (pod, *accounts)):
        yield "the service account's token is mounted"
    if pod.get("enableServiceLinks") is not False:
        yield "service links are on: Kubernetes would set variables that look like settings"
    for container in site.containers:
        own, name = container.get("securityContext", {}), container["name"]
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            yield f"{name} may gain privileges"
        if own.get("capabilities") != {"drop": ["ALL"]}:
            yield f"{name} has capabilities {own.get('capabilities')}; it must drop ALL"
        if own.get("readOnlyRootFilesystem") is not True:
            yield f"{name} may write to its root file system"
        if own.keys() & {"runAsUser", "runAsNonRoot", "runAsGroup", "seccompProfile"}:
            yield f"{name} overrides the pod's user or seccomp profile"
        if any("hostPort" in port for port in container.get("ports", ())):
            yield f"{name} takes a port of the node"
        if not IMAGE.fullmatch(container["image"]):
            yield f"{name} runs {container['image']}; the images are a registry's dragoman:cpu and dragoman:cuda"
        if container["image"] != site.server["image"]:
            yield f"{name} runs {container['image']} and the server {site.server['image']}"
    (namespace,) = site.of("Namespace")
    if namespace["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
        yield "the namespace does not enforce `restricted`"


def settings(site: Manifests) -> Complaints:
    """Check that the server knows every setting, in the file and in the environment."""
    for name in site.variables:
        if not name.startswith(PREFIX):
            yield f"variable {name} is none of the server's; those begin with {PREFIX}"
    try:
        _ = site.settings
    except ValueError as error:
        why = " ".join(str(error).split())
        yield f"the server refuses its settings (file and environment): {why}"


def drain(site: Manifests) -> Complaints:
    """Check that a stop leaves time for balancers to notice, for accepted calls, and for the process to end."""
    settings, allowed = site.settings, site.pod["terminationGracePeriodSeconds"]
    stop = site.server.get("lifecycle", {}).get("preStop", {})
    before = stop.get("sleep", {}).get("seconds", 0)
    if stop and not before:
        yield f"the server's preStop takes an unknown time: {stop}"
    needed = before + settings.drain_delay_seconds + settings.grace_seconds + STOP_MARGIN_SECONDS
    if allowed < needed:
        yield (
            f"a stop may take {needed:g} s (preStop {before:g}, drain delay {settings.drain_delay_seconds:g}, grace "
            f"{settings.grace_seconds:g}, margin {STOP_MARGIN_SECONDS}), but the pod is killed after {allowed} s"
        )
    if before + settings.drain_delay_seconds < ENDPOINTS_SECONDS:
        yield (
            f"a stopping pod takes calls for {before + settings.drain_delay_seconds:g} s; balancers need "
            f"{ENDPOINTS_SECONDS} s to notice: raise drain_delay_seconds"
        )
    if settings.grace_seconds < settings.default_deadline_seconds:
        yield (
            f"calls without a deadline of their own may take {settings.default_deadline_seconds:g} s, but a stop "
            f"leaves them {settings.grace_seconds:g} s"
        )
    if not settings.max_connection_age_seconds:
        yield "connections never end, so clients would not find new pods"


def replicas(site: Manifests) -> Complaints:
    """Check that one pod can always be evicted, one always stays, and only one thing sets the number of replicas."""
    name, spec = site.deployment["metadata"]["name"], site.deployment["spec"]
    scalers = [*site.of("HorizontalPodAutoscaler"), *site.of("ScaledObject")]
    least = spec.get("replicas", 1)
    if len(scalers) > 1:
        yield f"more than one thing scales: {', '.join(map(_name, scalers))}"
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        least = scaler["spec"].get("minReplicas", scaler["spec"].get("minReplicaCount", 1))
        most = scaler["spec"].get("maxReplicas", scaler["spec"].get("maxReplicaCount", least))
        if (target["kind"], target["name"]) != ("Deployment", name):
            yield f"{_name(scaler)} scales {target['kind']} {target['name']!r}; the server's is Deployment {name!r}"
        if "replicas" in spec:
            yield f"the Deployment sets replicas, which {_name(scaler)} does too"
        if least > most:
            yield f"{_name(scaler)} wants at least {least} and at most {most} replicas"
    for budget in site.of("PodDisruptionBudget"):
        if budget["spec"].get("minAvailable", 0) >= least or budget["spec"].get("maxUnavailable", 1) < 1:
            yield f"{_name(budget)} lets no pod go, so no node can be drained"
    if least < 2:
        yield f"there may be {least} replica, so a restart is an outage"
    rolling = spec["strategy"]["rollingUpdate"]
    if not (rolling["maxSurge"] or rolling["maxUnavailable"]) or rolling["maxUnavailable"] >= least:
        yield f"the Deployment rolls by {rolling} with {least} replicas: stuck, or an outage"


def autoscaling(site: Manifests) -> Complaints:
    """Check that replicas scale by load in pods, and not by CPU, which is always busy under load."""
    for scaler in site.of("HorizontalPodAutoscaler"):
        metrics = scaler["spec"]["metrics"]
        names = {metric.get("external", {}).get("metric", {}).get("name") for metric in metrics}
        if names != {"dragoman_load"}:
            yield f"{_name(scaler)} does not scale by load: {sorted(map(str, names))}"
        for external in (metric["external"] for metric in metrics if "external" in metric):
            target, labels = external["target"], external["metric"].get("selector", {}).get("matchLabels")
            if target["type"] != "AverageValue":
                yield f"{_name(scaler)} does not take the load for a number of pods: {target}"
            if labels != {"deployment": scaler["spec"]["scaleTargetRef"]["name"]}:
                yield f"{_name(scaler)} asks for the load of {labels}, which is not what it scales"
    for scaler in site.of("ScaledObject"):
        triggers = scaler["spec"]["triggers"]
        own = scaler["metadata"]["namespace"], scaler["spec"]["scaleTargetRef"]["name"]
        for trigger in triggers:
            query = trigger["metadata"].get("query", "")
            if "dragoman_engine_busy_seconds_total" not in query:
                yield f"{_name(scaler)} does not scale by load: {query}"
            if tuple(re.findall(r'(?:namespace|deployment)="(.*?)"', query)) != own:
                yield f"{_name(scaler)} asks for the load of others than {own}: {query}"
            if trigger.get("metricType") != "AverageValue":
                yield f"{_name(scaler)} does not take the load for a number of pods: {trigger.get('metricType')}"
            if trigger["metadata"].get("ignoreNullValues") != "false":
                yield f"{_name(scaler)} takes no answer of Prometheus for 0"


def services(site: Manifests) -> Complaints:
    """Check that one service gives clients all addresses, and one gives meshes a single address."""
    headless = [document for document in site.of("Service") if document["spec"].get("clusterIP") == "None"]
    if len(headless) != 1 or len(site.of("Service")) != 2:
        yield "there must be one headless Service, and one with an address"
    for document in site.of("Service"):
        found = {port["targetPort"]: port["port"] for port in _ports(document)}
        expected = {"grpc": site.settings.port}
        if site.settings.http_port >= 0 and document not in headless:  # clients of HTTP don't balance by themselves
            expected["http"] = site.settings.http_port
        if found != expected:
            yield f"{_name(document)} gives out the ports {found}; the server has {expected}"


def repeated(site: Manifests) -> Complaints:
    """Check that a second apply changes nothing: the API server keeps neither null nor empty lists and maps."""
    for document in site.documents:
        for path in _empty(document, ""):
            yield f"{_name(document)} has nothing at {path[1:]}, so each apply is a change"


CHECKS: tuple[Callable[[Manifests], Complaints], ...] = (
    *(selectors, doors, ports, probes, mounts, resources, security, drain, replicas, autoscaling, services, repeated),
)


def complaints(site: Manifests) -> list[str]:
    """Return all complaints; if the server would reject its settings, return only that."""
    return list(settings(site)) or [complaint for check in CHECKS for complaint in check(site)]


def _ports(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = document["spec"]["ports"]
    return ports


def _empty(value: Any, path: str) -> Iterator[str]:
    if value in (None, [], {}):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _empty(inner, f"{path}.{key}")


def _name(document: Mapping[str, Any]) -> str:
    return f"{document['kind']} {document['metadata']['name']}"
