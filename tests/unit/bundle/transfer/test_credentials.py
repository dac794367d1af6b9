"""Passwords for registries, from the files of docker, podman and Kubernetes."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from service.bundle.errors import BundleError
from service.bundle.transfer.credentials import basic_credentials

AUTH = base64.b64encode(b"reader:secret").decode()
OTHER = base64.b64encode(b"other:secret").decode()


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    return tmp_path / "config.json"


def test_nobody_is_logged_in(config: Path) -> None:
    assert basic_credentials("registry.example") == ""


@pytest.mark.parametrize("entry", [{"auth": AUTH}, {"username": "reader", "password": "secret"}])
@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("registry.example:5000", "registry.example:5000"),
        ("https://registry.example", "registry.example"),
        ("https://index.docker.io/v1/", "registry-1.docker.io"),
    ],
)
def test_the_registrys_entry_counts(entry: dict[str, str], key: str, registry: str, config: Path) -> None:
    config.write_text(json.dumps({"auths": {key: entry, "other.example": {"auth": "other"}}, "credsStore": "pass"}))
    assert basic_credentials(registry) == AUTH
    assert basic_credentials("third.example") == ""


def test_a_password_of_several_lines_is_one(config: Path) -> None:
    """The error of a header with a line break would print it."""
    config.write_text(json.dumps({"auths": {"registry.example": {"auth": f"{AUTH[:5]}\n{AUTH[5:]}\n"}}}))
    assert basic_credentials("registry.example") == AUTH
    config.write_text(json.dumps({"auths": {"registry.example": {"auth": "secr\u00e9t"}}}))
    with pytest.raises(BundleError, match=r"config.json has an \"auth\" that is no base64; log in again") as caught:
        basic_credentials("registry.example")
    assert "secr" not in str(caught.value)


def test_podmans_file_comes_first(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(json.dumps({"auths": {"registry.example": {"auth": OTHER}}}))
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {"registry.example": {"auth": AUTH}}}))
    assert basic_credentials("registry.example") == OTHER
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    assert basic_credentials("registry.example") == AUTH


@pytest.mark.parametrize("document", [[], {"auths": []}, {"auths": {"registry.example": "secret"}}, "no JSON"])
def test_a_file_that_is_no_such_file(document: Any, config: Path) -> None:
    config.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(BundleError, match=r"config.json can't be read as a file of registries' credentials") as caught:
        basic_credentials("registry.example")
    assert "secret" not in str(caught.value)
