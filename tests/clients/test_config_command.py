"""`dragoman config` and the configuration file of `dragoman serve`, as processes."""

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from service.config.server_config import SETTINGS
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, dragoman, environment, free_port, samples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text("max_slots = 2\nmax_waiting = 3\nport = 4\n", encoding="utf-8")
    return path


def test_it_tells_what_is_in_effect_and_why_in_a_file_of_its_own(path: Path, tmp_path: Path) -> None:
    run = dragoman(
        *("config", "--port", "7", "--no-reflection"),
        DRAGOMAN_SERVE_CONFIG=str(path),
        DRAGOMAN_SERVE_PORT="5",
        DRAGOMAN_SERVE_MAX_WAITING="6",
    )
    assert (run.returncode, run.stderr) == (0, b"")
    lines = run.stdout.decode().splitlines()
    assert len(lines) == len(SETTINGS)
    for line in (
        f"max_slots = 2  # file {path}",
        "max_waiting = 6  # environment DRAGOMAN_SERVE_MAX_WAITING",
        "port = 7  # flag --port",
        "reflection = false  # flag --reflection",
        'host = "127.0.0.1"  # default',
    ):
        assert line in lines
    printed = tmp_path / "printed.toml"
    printed.write_bytes(run.stdout)
    again = dragoman("config", "--config", str(printed), "--json", DRAGOMAN_SERVE_CONFIG="/none.toml")  # the flag wins
    document = json.loads(again.stdout)
    values = {name: "" if each["value"] is None else each["value"] for name, each in document.items()}
    assert values == tomllib.loads(run.stdout.decode())
    assert {each["source"] for each in document.values()} == {f"file {printed}"}


def test_a_wrong_file_is_a_line_each_and_78(path: Path) -> None:
    path.write_text("max_slot = 2\nport = 70_000\n", encoding="utf-8")
    run = dragoman("serve", "--config", str(path), DRAGOMAN_SERVE_HOSTS="x")
    assert (run.returncode, run.stdout) == (78, b"")
    assert run.stderr.decode().splitlines() == [
        f"dragoman: {path} has an unknown key 'max_slot'; did you mean 'max_slots'?",
        f"dragoman: port in {path} is 70000; give a whole number from 0 to 65535.",
        "dragoman: the environment has an unknown variable 'DRAGOMAN_SERVE_HOSTS'; did you mean 'DRAGOMAN_SERVE_HOST'?",
    ]


def test_a_missing_file_is_one_line_and_78() -> None:
    run = dragoman("config", DRAGOMAN_SERVE_CONFIG="/none.toml")
    assert (run.returncode, run.stdout) == (78, b"")
    assert run.stderr == b"dragoman: can't read the configuration file /none.toml: No such file or directory.\n"


def test_a_server_takes_its_settings_from_the_file(tiny_models: Path, tmp_path: Path) -> None:
    path, port = tmp_path / "config.toml", free_port()
    path.write_text(f'log_level = "info"\nmax_slots = 3\nmetrics_port = {port}\nnum_threads = 9\n', encoding="utf-8")
    with ServerProcess(
        tiny_models, "--config", str(path)
    ) as process:  # its own flags take precedence: ports, models, threads
        assert samples(process.get("/metrics")[2], "dragoman_slots_max") == [3.0]
        process.signal(signal.SIGTERM)
        code, _, log = process.wait()
        assert code == 0
        assert "INFO service.server.server" in log


def test_other_commands_import_no_pydantic() -> None:
    program = """
import sys
from service.cli.main import run
for arguments in (["translate", "--help"], ["--help"], ["serve", "--help"]):
    if run(arguments) == 0:
        print([name for name in ("pydantic", "tqdm") if name in sys.modules], file=sys.stderr)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        timeout=patient(30),
        cwd=REPOSITORY,
        env=environment(),
        check=True,
    )
    assert run.stderr.decode().splitlines() == ["[]", "[]", "['pydantic']"]
