"""The line printed when the server is ready, and the command in it."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.servers import READY
from dragoman_client import DEFAULT_SERVER
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair
from service.cli.serve import ready_line
from service.config.server_config import ServerConfig


@pytest.fixture
def server(tiny_bundle: Path) -> Any:
    def make(*pairs: str, **config: Any) -> Any:
        manifest = Manifest.load(tiny_bundle)
        languages = tuple(LanguagePair(pair[:2], pair[3:]) for pair in pairs or ("en>de",))
        model = SimpleNamespace(manifest=dataclasses.replace(manifest, languages=languages))
        return ServerConfig(**config), [model]

    return make


@pytest.fixture(autouse=True)
def started_as_the_quick_start_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(Path.cwd() / ".venv/bin/dragoman"), "serve"])
    monkeypatch.setenv("PATH", "/usr/bin")


def test_the_default_server_needs_no_address(server: Any) -> None:
    assert ready_line(*server()) == (
        f"Dragoman is ready: gRPC on {DEFAULT_SERVER}, metrics on http://127.0.0.1:9464/metrics, "
        "status page on http://127.0.0.1:9465/. "
        'Try: .venv/bin/dragoman translate --to de "Where is the train station?"'
    )


def test_the_port_for_http_is_an_address_to_open(server: Any) -> None:
    page = "HTTP API and translation page on"
    assert f"gRPC on 127.0.0.1:50051, {page} http://127.0.0.1:8080/, metrics on" in ready_line(*server(http_port=8080))
    assert f", {page} http://[::1]:8080/, metrics" in ready_line(*server(http_port=8080, http_host="::1"))
    tls = {"tls_certificate": Path("a.crt"), "tls_key": Path("a.key")}
    assert f", {page} https://127.0.0.1:8080/, metrics" in ready_line(*server(http_port=8080, **tls))
    assert "page on" not in ready_line(*server(admin_port=-1))
    found = READY.search(f"{ready_line(*server(http_port=8080))}\n")
    assert found is not None
    assert (found["address"], found["http"]) == ("127.0.0.1:50051", "http://127.0.0.1:8080")


def test_another_address_is_part_of_the_command(server: Any) -> None:
    assert "translate --server 127.0.0.1:1234 --to de" in ready_line(*server(port=1234))
    assert "gRPC on 0.0.0.0:50051" in ready_line(*server(host="0.0.0.0"))
    assert "--server" not in ready_line(*server(host="0.0.0.0"))
    assert "--server [::1]:50051" in ready_line(*server(host="::"))


def test_another_language_gets_a_sentence_of_its_own(server: Any) -> None:
    assert ready_line(*server("fr>de")).endswith("--to de 'Where is the train station?'")  # the golden sentence


def test_an_english_sentence_is_for_a_model_that_reads_english(server: Any) -> None:
    (config, [german]), (_, [english]) = server("de>en"), server("en>fr")
    line = ready_line(config, [german, english])
    assert line.endswith('--from en --to fr "Where is the train station?"')


def test_several_sources_need_a_choice(server: Any) -> None:
    assert "--from en --to de" in ready_line(*server("en>de", "fr>de"))


@pytest.mark.parametrize("started", [str(Path.cwd() / "service/__main__.py"), "-c", "", "no/such/file"])
def test_a_module_is_started_as_one(server: Any, monkeypatch: pytest.MonkeyPatch, started: str) -> None:
    monkeypatch.setattr(sys, "argv", [started, "serve"])
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / ".venv/bin/python"))
    assert "Try: .venv/bin/python -m service translate" in ready_line(*server())
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert "Try: /usr/bin/python3 -m service translate" in ready_line(*server())


def test_a_command_that_path_finds_needs_no_folder(
    server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a container, whose working folder is /: there a path from here only looks like an absolute one."""
    command = tmp_path / "bin" / "dragoman"
    command.parent.mkdir()
    command.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(command), "serve"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/usr/bin:{command.parent}")
    assert "Try: dragoman translate" in ready_line(*server())


def test_a_server_without_models_has_nothing_to_try(server: Any) -> None:
    config, _ = server()
    assert ready_line(config, []).endswith("9465/. No model is loaded yet; load one with KServe's RepositoryModelLoad.")


def test_what_is_not_served_is_told(server: Any) -> None:
    config, models = server(models=Path("/srv"))
    assert ". Not served: 1 bundle in /srv; the log says why. Try: " in ready_line(config, models, 1)
    assert ": 2 bundles in /srv; the log says why. Try: " in ready_line(config, models, 2)
