"""Writes what kustomize shares with the chart in deploy/helm/dragoman: run it after a change there, or of the rules.

The chart is the source of every object. What kustomize adds to an object, such as a variable, are patches: those of
`components` and `overlays/gpu` are written by hand, and a test compares the results.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

KUBERNETES = Path(__file__).parent
CHART = KUBERNETES.parent / "helm" / "dragoman"
NAME = "dragoman"
VALUES = {
    "image.repository": "registry.invalid/dragoman",  # nobody's, ever (RFC 2606); a site sets its own
    "monitoring.rules.runbooks": "docs/runbooks.md",
}
_HOSTS = {"grpc": "grpc.translate.example.org", "http": "translate.example.org"}
_MONITOR = {"monitoring.monitor.by": "pod"}  # scalers need it
# The files with objects of the chart: the values that make the chart have them, and the template and name of each.
FILES: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "base/deployment.yaml": ({}, "deployment", NAME),
    "base/services.yaml": ({}, "services", ""),
    "base/service_account.yaml": ({}, "service_account", NAME),
    "base/disruption_budget.yaml": ({}, "disruption_budget", NAME),
    "base/network_policy.yaml": ({}, "network_policy", NAME),
    "components/hpa/autoscaler.yaml": ({**_MONITOR, "autoscaling.by": "hpa"}, "autoscaler", NAME),
    "components/keda/scaled_object.yaml": ({**_MONITOR, "autoscaling.by": "keda"}, "autoscaler", NAME),
    "components/http/network_policy.yaml": ({"http.enabled": "true"}, "network_policy", f"{NAME}-http"),
    "components/tracing/network_policy.yaml": ({"tracing.enabled": "true"}, "network_policy", f"{NAME}-tracing"),
    "components/models-store/network_policy.yaml": (
        {"models.from": "store", "models.url": "s3://bucket/models"},
        "network_policy",
        f"{NAME}-store",
    ),
    "components/monitoring/pod_monitor.yaml": (_MONITOR, "monitor", NAME),
    "components/monitoring/prometheus_rule.yaml": ({"monitoring.rules.enabled": "true"}, "prometheus_rule", NAME),
    "components/ingress/ingress.yaml": (
        {
            "http.enabled": "true",
            **{f"ingress.{door}.enabled": "true" for door in _HOSTS},
            **{f"ingress.{door}.host": host for door, host in _HOSTS.items()},
            **{f"ingress.{door}.tlsSecret": "dragoman-ingress-tls" for door in _HOSTS},
        },
        "ingress",
        "",
    ),
    "components/gateway/routes.yaml": (
        {
            "http.enabled": "true",
            "gateway.enabled": "true",
            "gateway.parents[0].name": "public",
            "gateway.parents[0].namespace": "gateways",
            **{f"gateway.hostnames.{door}[0]": host for door, host in _HOSTS.items()},
        },
        "routes",
        "",
    ),
}
_HEAD = "# Written by deploy/kubernetes/write.py from deploy/helm/dragoman: change that and run it.\n"
_ADAPTER_HEAD = """\
# Not applied from here: the rules for prometheus-adapter's own configuration (`rules.external` of its chart's values).
# Load in pods. A pod's is the share of time in which its engines are busy, over the share of calls that it did not
# refuse for overload. The shares of several models add up, as they share the pod's CPUs; a model that is not called
# adds nothing. The label `deployment` comes from ../monitoring/pod_monitor.yaml.
"""
_SETTINGS_HEAD = """\
# Settings of the server: docs/operations.md. The environment, which overlays and components set, wins over this file.
# drain_delay_seconds and grace_seconds are less than the pod's terminationGracePeriodSeconds, with 10 s to spare.
"""


def template(helm: str, values: Mapping[str, str]) -> str:
    """Return what the chart renders for a release with these values, as text."""
    settings = ",".join(f"{name}={value}" for name, value in {**VALUES, **values}.items())
    command = [helm, "template", NAME, str(CHART), "--namespace", NAME, "--set", settings]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def written(helm: str) -> dict[str, str]:
    """Return the content of each file by its name."""
    files = {}
    for name, (values, source, only) in FILES.items():
        parts = _parts(template(helm, values), source)
        chosen = [part for part in parts if not only or yaml.safe_load(part)["metadata"]["name"] == only]
        assert chosen, f"the chart renders nothing for {name}"
        files[name] = _HEAD + "---\n".join(chosen)
    # Kustomize names the settings' ConfigMap by their hash, which rolls the pods.
    deployment = re.sub(r" *checksum/config:.*\n", "", files["base/deployment.yaml"])
    files["base/deployment.yaml"] = deployment
    (config_map,) = map(yaml.safe_load, _parts(template(helm, {}), "config_map"))
    files["base/config.toml"] = _SETTINGS_HEAD + config_map["data"]["config.toml"].lstrip()
    files["components/hpa/prometheus_adapter.yaml"] = _ADAPTER_HEAD + _adapter_rules()
    return files


def _parts(text: str, source: str) -> list[str]:
    """Return the documents that a template rendered, without the line that names it."""
    parts = [part.partition("\n")[2] for part in text.split("---\n") if f"templates/{source}.yaml\n" in part]
    return [f"{part.strip()}\n" for part in parts if yaml.safe_load(part)]


def _adapter_rules() -> str:
    load = (CHART / "files" / "load.promql").read_text(encoding="utf-8").replace("PODS", "<<.LabelMatchers>>")
    query = "".join(f"      {line}\n" for line in load.splitlines())
    return f"""\
externalRules:
  - seriesQuery: '{{__name__="dragoman_engine_busy_seconds_total",namespace!="",deployment!=""}}'
    resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
    name: {{as: dragoman_load}}
    metricsQuery: |-
{query}"""


if __name__ == "__main__":
    for file, content in written(sys.argv[1] if len(sys.argv) > 1 else "helm").items():
        (KUBERNETES / file).parent.mkdir(exist_ok=True)
        (KUBERNETES / file).write_text(content, encoding="utf-8")
