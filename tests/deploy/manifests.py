"""The output of kustomize for deploy/kubernetes, as data."""

import json
import math
import os
import subprocess
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import yaml
from pydantic import TypeAdapter, ValidationError

from service.config.server_config import ServerConfig
from tests.patience import patient
from tests.servers import REPOSITORY
from tests.tools import built_file

KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
SCHEMAS = Path(__file__).parent / "schemas"  # of operators
GOLDEN = Path(__file__).parent / "golden"
CUSTOM = {path.stem for path in SCHEMAS.iterdir()}
COMPONENTS = tuple(sorted(path.name for path in (KUBERNETES / "components").iterdir()))
PREFIX = "DRAGOMAN_SERVE_"
CONFIG_VARIABLE = PREFIX + "CONFIG"  # path of the settings file
SERVER = "dragoman"  # the container's name
_FACTORS = {"m": Decimal("0.001"), "": Decimal(1), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30)}


def render(folder: Path, overlay: str, *components: str) -> list[dict[str, Any]]:
    """Render an overlay with components, as a site would combine them in a folder of its own."""
    folder.mkdir()
    root = os.path.relpath(KUBERNETES, folder.resolve())
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{root}/overlays/{overlay}"],
        "components": [f"{root}/components/{component}" for component in components],
    }
    return kustomize(folder, kustomization)


def kubectl() -> Path:
    """Return kubectl, whose version is pinned beside Helm's."""
    return built_file(REPOSITORY / "build" / "helm" / "kubectl", "build/helm/installed")


def kustomize(folder: Path, kustomization: Any) -> list[dict[str, Any]]:
    """Write a kustomization to a folder and return its documents."""
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    command = [str(kubectl()), "kustomize", str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=patient(60))
    assert answer.returncode == 0, answer.stderr
    return list(yaml.load_all(answer.stdout, yaml.CSafeLoader))


def validate(document: dict[str, Any], version: str = VERSIONS[0]) -> None:
    """Check a document by the schema of its operator, or by Kubernetes' own.

    Raises:
        jsonschema.ValidationError: it does not fit.
    """
    kind = document["kind"]
    if kind in CUSTOM:
        jsonschema.validate(document, json.loads((SCHEMAS / f"{kind}.json").read_text()))
    else:
        kubernetes_validate.validate(document, version, strict=True)


def check_as_reviewed(documents: list[dict[str, Any]], golden: Path, folder: Path) -> None:
    """Check that documents are those of a golden file; those that are not are written to `folder`."""
    text = yaml.safe_dump_all(documents)
    (folder / golden.name).write_text(text)
    assert text == golden.read_text(), f"review, and copy {folder / golden.name} to {golden}"


def quantity(written: str | int) -> Decimal:
    """Parse a Kubernetes quantity into its base unit: "100m" is 0.1, "1Gi" is 2**30.

    Raises:
        ValueError: the text is not a quantity.
    """
    text = str(written)
    digits = text.rstrip("mkKMGi")
    factor = _FACTORS.get(text[len(digits) :])
    if factor is None or not digits.replace(".", "", 1).isdigit():
        raise ValueError(f"{written!r} is no quantity")
    return Decimal(digits) * factor


class Manifests:
    """The documents of one site, with one Deployment and one container that serves."""

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
        """Return the ConfigMap that contains the server's settings file.

        Raises:
            ValueError: no ConfigMap contains that file.
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
        """Return the server's environment with references to resources resolved."""
        return {variable["name"]: self._value(variable) for variable in self.server["env"]}

    @property
    def settings(self) -> ServerConfig:
        """Return the configuration that the server reads from file and environment; the environment takes precedence.

        Raises:
            ValueError: a setting does not exist, or does not accept its value.
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
        return str(math.ceil(quantity(self.server["resources"][side][resource])))  # as Kubernetes itself does


def _parsed(name: str, value: Any, kinds: Mapping[str, Any]) -> Any:
    if name not in kinds:
        raise ValueError(f"there is no setting {name}")
    try:
        return TypeAdapter(kinds[name]).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{name} can't be {value!r}: {error}") from error
