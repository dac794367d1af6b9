"""User names and passwords for registries, from the files that docker, podman and Kubernetes' pull secrets share."""

import base64
import json
import os
from pathlib import Path

from service.bundle.errors import BundleError, one_line

_DOCKER_HUB = "registry-1.docker.io"
_KEY_OF_DOCKER_HUB = "https://index.docker.io/v1/"


def basic_credentials(registry: str) -> str:
    """Return base64 of "user:password" for a registry, HOST[:PORT]; empty if no file names it.

    Read are `REGISTRY_AUTH_FILE`, then config.json in `DOCKER_CONFIG` or ~/.docker. Programs that keep passwords
    (credential helpers) are not run.
    """
    folder = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")  # noqa: PTH111, never fails
    key = _KEY_OF_DOCKER_HUB if registry == _DOCKER_HUB else registry
    for path in (os.environ.get("REGISTRY_AUTH_FILE"), f"{folder}/config.json"):
        if path and Path(path).is_file():
            entries = _entries(Path(path))
            entry = entries.get(key) or entries.get(f"https://{key}") or {}
            if auth := entry.get("auth"):
                return _one_line(str(auth), path)
            if "username" in entry and "password" in entry:
                return base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()
    return ""


def _one_line(auth: str, path: str) -> str:
    """Return base64 without line breaks: an error about a header that has some would print the password."""
    try:
        return base64.b64encode(base64.b64decode("".join(auth.split()), validate=True)).decode()
    except ValueError:
        raise BundleError(f'{path} has an "auth" that is no base64; log in again.') from None


def _entries(path: Path) -> dict[str, dict[str, str]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8")).get("auths", {})
        if all(isinstance(entry, dict) for entry in entries.values()):
            return dict(entries)
        problem = "auths holds something else than objects"
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        problem = one_line(error)
    raise BundleError(f"{path} can't be read as a file of registries' credentials: {problem}.")
