"""TLS and API keys with server processes: what `dragoman serve` refuses, what its callers see, and the guide."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_client import Client, Tls
from service.calls.keys import read_keys
from service.cli.errors import ExitCode
from tests.certificates import Authority, Pair, replace
from tests.clients.command_line import dragoman_here
from tests.patience import patient
from tests.servers import (
    REPOSITORY,
    Serve,
    ServerProcess,
    dragoman,
    environment,
    eventually,
    free_port,
    samples,
)
from tests.tools import tool

COMMANDS = re.findall(r"^```bash\n(.*?)^```$", (REPOSITORY / "docs" / "security.md").read_text(), re.M | re.S)
DRAGOMAN = f'set -euo pipefail; dragoman() {{ {sys.executable} -m service "$@"; }}\n'


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def refused(folder: Path, *arguments: str) -> str:
    ports = ("--port", str(free_port()), "--metrics-port", str(free_port()))
    run = dragoman("serve", *ports, "--models", str(folder), *arguments)
    assert run.stdout == b""
    (line,) = run.stderr.decode().splitlines()
    assert run.returncode == ExitCode.CONFIG, line
    return line


def test_files_that_can_not_be_used_are_a_configuration_error(authority: Authority, tmp_path: Path) -> None:
    def start(pair: Pair) -> str:
        certificate, key = pair.write(tmp_path)
        return refused(tmp_path, "--tls-certificate", str(certificate), "--tls-key", str(key))

    good, other = authority.pair(), authority.pair()
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    assert start(Pair(good.certificate, other.key, good.not_after)) == (
        f"dragoman: {key} is not the key of {certificate}; give a certificate and its own key."
    )
    assert start(authority.pair(ends_days=-0.5)).startswith(f"dragoman: {certificate} has expired at ")
    assert refused(tmp_path, "--api-keys", str(key)).startswith(f"dragoman: {key} (API keys) is not TOML: ")


@pytest.fixture(scope="module")
def folder(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("security")
    authority.pair().write(folder)
    (folder / "ca.crt").write_bytes(authority.certificate)
    return folder


@pytest.fixture(scope="module")
def api_key(folder: Path) -> str:
    made = dragoman_here("key", "new", "alice", "--expires", "2099-01-31", "--requests-per-minute", "100")
    assert made.returncode == 0
    assert made.stdout.decode().splitlines()[0] == "[keys.alice]"
    assert made.stdout.decode().splitlines()[2:] == ["expires = 2099-01-31T00:00:00Z", "requests_per_minute = 100"]
    key = made.stderr.decode().strip()
    assert key not in made.stdout.decode()
    replace(folder / "keys.toml", made.stdout)
    return key


@pytest.fixture(scope="module")
def process(tiny_models: Path, folder: Path, api_key: str) -> Iterator[ServerProcess]:
    with ServerProcess(
        tiny_models,
        *("--tls-certificate", str(folder / "server.crt"), "--tls-key", str(folder / "server.key")),
        *("--api-keys", str(folder / "keys.toml")),
    ) as process:
        yield process


def ask(process: ServerProcess, *arguments: str, key: str = "") -> tuple[int, str, str]:
    run = dragoman_here(*arguments, "--server", process.address, DRAGOMAN_API_KEY=key)
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def test_every_command_speaks_tls_and_sends_the_key(process: ServerProcess, folder: Path, api_key: str) -> None:
    tls = ("--tls-ca", str(folder / "ca.crt"))
    assert " --tls " in process.ready_line
    for command in (("models",), ("detect", "Where is the train station?"), ("translate", "--to", "de", "Hello")):
        code, out, err = ask(process, *command, *tls, key=api_key)
        assert (code, err) == (0, "")
        assert out


def test_who_has_no_good_key_is_told_so_in_one_line(process: ServerProcess, folder: Path) -> None:
    tls = ("--tls-ca", str(folder / "ca.crt"))
    assert ask(process, "translate", "--to", "de", "Hello", *tls, key="dgm_wrong") == (
        ExitCode.NO_PERMISSION,
        "",
        "dragoman: the API key is unknown; check it for typing errors, or ask for a new one. "
        "This command reads it from DRAGOMAN_API_KEY.\n",
    )


def test_who_has_no_tls_connection_is_told_why_in_one_line(process: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "other.crt").write_bytes(Authority("Somebody else").certificate)
    not_trusted = "the server's certificate is not trusted; name its certificate authority with --tls-ca."
    assert ask(process, "models", "--tls-ca", str(tmp_path / "other.crt")) == (
        ExitCode.NOT_SECURE,
        "",
        f"dragoman: no TLS connection to {process.address}: {not_trusted}\n",
    )
    assert ask(process, "models") == (
        ExitCode.NOT_SECURE,
        "",
        f"dragoman: {process.address} closed the connection; if it uses TLS, add --tls.\n",
    )


def test_new_files_are_taken_without_a_restart(
    process: ServerProcess, folder: Path, authority: Authority, api_key: str
) -> None:
    fresh = authority.pair(ends_days=99)
    fresh.write(folder)
    name = "dragoman_tls_certificate_not_after_seconds"
    eventually(lambda: samples(process.get("/metrics")[2], name) == [fresh.not_after.timestamp()])
    code, _, err = ask(process, "models", "--tls-ca", str(folder / "ca.crt"), key=api_key)
    assert (code, err) == (0, "")


def test_the_commands_of_the_guide_make_what_they_say(serve: Serve, tmp_path: Path) -> None:
    tool("openssl", "openssl")
    assert len(COMMANDS) == 3
    script = DRAGOMAN + "".join(COMMANDS)
    run = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=patient(60)
    )
    assert run.returncode == 0, run.stderr
    assert read_keys(tmp_path / "keys.toml").names == {"web-shop", "nightly"}
    files = {
        "tls_certificate": "server.crt",
        "tls_key": "server.key",
        "tls_client_ca": "ca.crt",
        "api_keys": "keys.toml",
    }
    server = serve(**{setting: tmp_path / name for setting, name in files.items()})
    tls = Tls(tmp_path / "ca.crt", tmp_path / "client.crt", tmp_path / "client.key")
    for name in ("web-shop", "nightly"):
        key = (tmp_path / f"{name}.key").read_text().strip()
        with Client(server.address, tls=tls, api_key=key) as client:
            assert client.translate(["Hello"], "en", "de")
    assert (tmp_path / "keys.toml").stat().st_mode & 0o077 == 0
