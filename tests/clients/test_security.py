"""TLS and API keys with server processes: what `dragoman serve` refuses, what its callers see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.calls.keys import read_keys
from service.cli.errors import ExitCode
from service.domain.grants import Grants
from tests.certificates import Authority, replace
from tests.clients.command_line import dragoman_here
from tests.servers import ServerProcess, dragoman, free_port


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


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


def test_a_key_for_some_models_and_glossaries_is_written_as_it_is_read(tmp_path: Path) -> None:
    made = dragoman_here("key", "new", "shop", "--model", "en-de", "--model", "de-en", "--glossary", "brand")
    assert made.stdout.decode().splitlines()[2:] == ['models = ["en-de", "de-en"]', 'glossaries = ["brand"]']
    path = tmp_path / "keys.toml"
    path.write_bytes(made.stdout)
    [key] = read_keys(path)
    assert key.grants == Grants("shop", frozenset({"en-de", "de-en"}), frozenset({"brand"}))


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


def test_who_has_no_good_key_or_no_tls_connection_is_told_so_in_one_line(
    process: ServerProcess, folder: Path, tmp_path: Path
) -> None:
    unknown = "the API key is unknown; check it for typos, or ask for a new one. "
    assert ask(process, "models", "--tls-ca", str(folder / "ca.crt"), key="dgm_wrong") == (
        ExitCode.NO_PERMISSION,
        "",
        f"dragoman: {unknown}This command reads it from DRAGOMAN_API_KEY.\n",
    )
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


def test_files_that_can_not_be_used_are_a_configuration_error(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.pair(ends_days=-0.5).write(tmp_path)
    ports = ("--port", str(free_port()), "--metrics-port", str(free_port()), "--models", str(tmp_path))
    run = dragoman("serve", *ports, "--tls-certificate", str(certificate), "--tls-key", str(key))
    assert (run.returncode, run.stdout) == (ExitCode.CONFIG, b"")
    (line,) = run.stderr.decode().splitlines()
    assert line.startswith(f"dragoman: {certificate} expired at ")
