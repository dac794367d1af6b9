"""Writes components/monitoring/prometheus_rule.yaml from deploy/prometheus/rules: run it after a change of these.

The rules have one source, which Prometheus reads as it is; its operator wants them in an object of Kubernetes.
"""

from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parent.parent / "prometheus" / "rules"
TARGET = Path(__file__).parent / "components" / "monitoring" / "prometheus_rule.yaml"
_HEAD = "# Written by prometheus_rule.py from deploy/prometheus/rules: change those and run it.\n"


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as it is read best."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def prometheus_rule(folder: Path = RULES) -> str:
    """The object, as YAML, with the groups of all files of the folder in order of their names."""
    files = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yml"))]
    rule: dict[str, Any] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dragoman", "labels": {"app.kubernetes.io/name": "dragoman"}},
        "spec": {"groups": [group for content in files for group in content["groups"]]},
    }
    return _HEAD + yaml.dump(rule, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    TARGET.write_text(prometheus_rule(), encoding="utf-8")
