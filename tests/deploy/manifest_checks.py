"""What neither Kubernetes' schemas nor a golden file check: whether a site's parts match each other and the server.

Each check yields complaints of one line each, with the object's name and what is wrong with it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.deploy.manifests import PREFIX, Manifests

Complaints = Iterator[str]

SECRET_KEYS = {"dragoman-tls": {"tls.crt", "tls.key", "ca.crt"}, "dragoman-api-keys": {"keys.toml"}}
OPERATORS = {"dragoman-glossaries"}  # ConfigMaps that an operator creates
# The server's needs beyond drain delay and grace: its last answers (2 s), the end of engines and process.
STOP_MARGIN_SECONDS = 10
# The time until every node and proxy knows that a pod is stopping. Kubernetes guarantees no bound; a few seconds are
# usual.
ENDPOINTS_SECONDS = 5


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
    names = {port["name"] for port in site.server["ports"]}
    for document in site.of("Service"):
        for port in document["spec"]["ports"]:
            if port["targetPort"] not in names:
                yield f"{_name(document)} wants port {port['targetPort']!r}; the server has {sorted(names)}"


def mounts(site: Manifests) -> Complaints:
    """Check that mounts and volumes match, and that files named in settings are in something mounted."""
    volumes = {volume["name"]: volume for volume in site.pod["volumes"]}
    mounted = {mount["name"] for each in site.containers for mount in each.get("volumeMounts", ())}
    if mounted != volumes.keys():
        yield f"volumes are {sorted(volumes)}, and {sorted(mounted)} are mounted"
    config_maps = {document["metadata"]["name"] for document in site.of("ConfigMap")}
    wanted = {volume["configMap"]["name"] for volume in volumes.values() if "configMap" in volume}
    if not wanted <= config_maps | OPERATORS:
        yield f"volumes want ConfigMaps {sorted(wanted)}; there are {sorted(config_maps)}"
    if "dragoman-config" in wanted:
        yield "the ConfigMap's name has no hash of its content, so a change would not roll the pods"
    settings = site.settings
    for path in (settings.tls_certificate, settings.tls_key, settings.tls_client_ca, settings.api_keys):
        if path is None:
            continue
        mount = next((m for m in site.server["volumeMounts"] if m["mountPath"] == str(path.parent)), None)
        secret = volumes.get(mount["name"], {}).get("secret", {}).get("secretName") if mount else None
        if secret is None or path.name not in SECRET_KEYS.get(secret, ()):
            yield f"a setting names {path}; there lies the secret {secret!r}, without that key"
    if settings.glossaries and str(settings.glossaries) not in {m["mountPath"] for m in site.server["volumeMounts"]}:
        yield f"a setting names {settings.glossaries}, where nothing is mounted"


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


CHECKS: tuple[Callable[[Manifests], Complaints], ...] = (selectors, ports, mounts, drain)


def complaints(site: Manifests) -> list[str]:
    """Return all complaints; if the server would reject its settings, return only that."""
    return list(settings(site)) or [complaint for check in CHECKS for complaint in check(site)]


def _name(document: Mapping[str, Any]) -> str:
    return f"{document['kind']} {document['metadata']['name']}"
