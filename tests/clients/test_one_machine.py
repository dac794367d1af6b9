"""docs/one-machine.md: its settings, systemd's units, and nginx with TLS before page, HTTP and gRPC on one port."""

import contextlib
import json
import re
import ssl
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_client import Client, Tls
from tests.certificates import Authority
from tests.key_files import ALICE, write_keys
from tests.patience import patient
from tests.proxies import running_nginx, with_ports
from tests.servers import REPOSITORY, ServerProcess, free_port
from tests.tools import tool

GUIDE = (REPOSITORY / "docs/one-machine.md").read_text("utf-8")
UNITS = sorted((REPOSITORY / "deploy/systemd").iterdir())
TLS_CONF = (REPOSITORY / "deploy/nginx/tls.conf").read_text("utf-8")
NAME = "translate.example.org"


def told_by_systemd(unit: str, folder: Path) -> str:
    """Return what systemd finds wrong with a unit whose program is there."""
    path = folder / "dragoman.service"
    path.write_text(unit.replace("/opt/dragoman/bin/dragoman", "/bin/true"))
    command = [tool("systemd-analyze", "systemd"), "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_nothing_wrong_with_a_unit(path: Path, tmp_path: Path) -> None:
    unit = path.read_text("utf-8").replace("%i", "1")
    assert told_by_systemd(unit, tmp_path) == ""
    assert "LimitNOFILES" in told_by_systemd(unit.replace("LimitNOFILE", "LimitNOFILES"), tmp_path)


def test_both_units_confine_a_server_alike() -> None:
    own = r"^(?:Environment|User|DynamicUser|SupplementaryGroups|TimeoutStopSec|ExecStart)=.*\n|^#.*\n"
    one, several = (re.sub(own, "", path.read_text("utf-8"), flags=re.M).split("[Service]")[1] for path in UNITS)
    assert one == several
    assert "ProtectSystem=strict" in one


@contextlib.contextmanager
def behind_nginx(models: Path, folder: Path) -> Iterator[tuple[int, Tls]]:
    """Run a server with the guide's settings, and nginx with tls.conf; yield its port, and whom to trust."""
    authority = Authority()
    certificate, key = authority.pair().write(folder)
    (folder / "ca.crt").write_bytes(authority.certificate)
    tls = Tls(authorities=folder / "ca.crt")
    settings = tomllib.loads(re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0])
    assert settings["http_port"] == 8080
    settings |= {"models": str(models), "api_keys": str(write_keys(folder, alice=ALICE))}
    del settings["http_port"]
    config = folder / "config.toml"
    config.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items()))
    with ServerProcess(models, "--config", str(config), has_http=True) as server:
        port = free_port()
        conf = TLS_CONF.replace("listen 443", f"listen 127.0.0.1:{port}").replace(NAME, "localhost")
        conf = conf.replace("/etc/ssl/dragoman/server.crt", str(certificate))
        conf = conf.replace("/etc/ssl/dragoman/server.key", str(key))
        conf = with_ports(conf, {8080: server.http_port, 50051: server.port})
        with running_nginx(folder, f"events {{ }}\nhttp {{\n{conf}\n}}\n", port, tls.credentials()):
            yield port, tls


def test_page_http_and_grpc_share_a_port_with_tls(tiny_models: Path, tmp_path: Path) -> None:
    with behind_nginx(tiny_models, tmp_path) as (port, tls):
        context = ssl.create_default_context(cafile=tls.authorities)

        def fetch(path: str, body: bytes | None = None, **headers: str) -> str:
            asked = urllib.request.Request(f"https://localhost:{port}{path}", body, headers)
            with urllib.request.urlopen(asked, timeout=patient(30), context=context) as answer:
                return str(answer.read().decode())

        assert "<title>" in fetch("/")
        wish = json.dumps({"text": "Hello", "source_language_code": "en", "target_language_code": "de"}).encode()
        headers = {"Content-Type": "application/json", "X-Api-Key": ALICE}
        (over_http,) = json.loads(fetch("/v1/translate", wish, **headers))["translations"]
        with Client(f"localhost:{port}", tls=tls, api_key=ALICE) as client:
            (over_grpc,) = client.translate(["Hello"], "en", "de")
            assert over_grpc.text == over_http["text"]
            assert "".join(event.delta for event in client.stream(["Hello"], "en", "de")) == over_grpc.text
