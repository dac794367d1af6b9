"""What kustomize makes of deploy/kubernetes, as data."""

import math
import os
import subprocess
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from service.config.server_config import ServerConfig
from tests.patience import patient
from tests.servers import REPOSITORY
from tests.tools import tool

KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
COMPONENTS = tuple(sorted(path.name for path in (KUBERNETES / "components").iterdir()))
PREFIX = "DRAGOMAN_SERVE_"
CONFIG_VARIABLE = PREFIX + "CONFIG"  # where the settings file lies
SERVER = "dragoman"  # the container's name
_FACTORS = {"m": Decimal("0.001"), "": Decimal(1), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30)}


def render(folder: Path, overlay: str, *components: str) -> list[dict[str, Any]]:
    """The documents of an overlay with components, as a site would put them together in a folder of its own."""
    folder.mkdir()
    root = os.path.relpath(KUBERNETES, folder.resolve())
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{root}/overlays/{overlay}"],
        "components": [f"{root}/components/{component}" for component in components],
    }
    return kustomize(folder, kustomization)


def kustomize(folder: Path, kustomization: Any) -> list[dict[str, Any]]:
    """The documents of a kustomization, which is written to a folder."""
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    command = [tool("kubectl", "kubectl"), "kustomize", str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=patient(60))
    assert answer.returncode == 0, answer.stderr
    return list(yaml.load_all(answer.stdout, yaml.CSafeLoader))


def quantity(written: str | int) -> Decimal:
    """A quantity of Kubernetes in its base unit: "100m" is 0.1, "1Gi" is 2**30.

    Raises:
        ValueError: it is none.
    """
    text = str(written)
    digits = text.rstrip("mkKMGi")
    factor = _FACTORS.get(text[len(digits) :])
    if factor is None or not digits.replace(".", "", 1).isdigit():
        raise ValueError(f"{written!r} is no quantity")
    return Decimal(digits) * factor


class Manifests:
    """The documents of one site. There is one Deployment, with one container that serves."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.documents = documents

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [document for document in self.documents if document["kind"] == kind]

    @property
    def deployment(self) -> dict[str, Any]:
        (deployment,) = self.of("Deployment")
        return deployment

    @property
    def pod_labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.deployment["spec"]["template"]["metadata"]["labels"]
        return labels

    @property
    def pod(self) -> dict[str, Any]:
        pod: dict[str, Any] = self.deployment["spec"]["template"]["spec"]
        return pod

    @property
    def containers(self) -> list[dict[str, Any]]:
        return [*self.pod.get("initContainers", []), *self.pod["containers"]]

    @property
    def server(self) -> dict[str, Any]:
        (server,) = (container for container in self.pod["containers"] if container["name"] == SERVER)
        return server  # type: ignore[no-any-return]

    @property
    def config_map(self) -> dict[str, Any]:
        """The ConfigMap in which the server finds its file.

        Raises:
            ValueError: there is none with that file.
        """
        folder, _, name = self.variables[CONFIG_VARIABLE].rpartition("/")
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        mounted = [mount["name"] for mount in self.server["volumeMounts"] if mount["mountPath"] == folder]
        names = [volumes[volume]["configMap"]["name"] for volume in mounted]
        for document in self.of("ConfigMap"):
            if document["metadata"]["name"] in names and name in document["data"]:
                return document
        raise ValueError(f"no ConfigMap has {folder}/{name}")

    @property
    def variables(self) -> dict[str, str]:
        """The server's environment; what refers to resources is resolved."""
        return {variable["name"]: self._value(variable) for variable in self.server["env"]}

    @property
    def settings(self) -> ServerConfig:
        """What the server makes of file and environment; the environment wins.

        Raises:
            ValueError: there is no such setting, or it does not take that value.
        """
        file = tomllib.loads(self.config_map["data"][Path(self.variables[CONFIG_VARIABLE]).name])
        environment = {name.removeprefix(PREFIX).lower(): value for name, value in self.variables.items()}
        del environment["config"]
        kinds = get_type_hints(ServerConfig, include_extras=True)
        return ServerConfig(**{name: _parsed(name, value, kinds) for name, value in (file | environment).items()})

    def _value(self, variable: dict[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        reference = variable["valueFrom"]["resourceFieldRef"]
        side, resource = reference["resource"].split(".")
        return str(math.ceil(quantity(self.server["resources"][side][resource])))  # as Kubernetes does by itself


def _parsed(name: str, value: Any, kinds: Mapping[str, Any]) -> Any:
    if name not in kinds:
        raise ValueError(f"there is no setting {name}")
    try:
        return TypeAdapter(kinds[name]).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{name} can't be {value!r}: {error}") from error
