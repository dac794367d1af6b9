"""The commands of docs/security.md, run in sequence, create files that a server and its callers can use."""

import re
import subprocess
import sys
from pathlib import Path

from dragoman_client import Client, Tls
from service.calls.keys import read_keys
from service.config.server_config import ServerConfig
from tests.patience import patient
from tests.servers import REPOSITORY, LoopThread, environment, in_process
from tests.tools import tool

COMMANDS = re.findall(r"^```bash\n(.*?)^```$", (REPOSITORY / "docs" / "security.md").read_text(), re.M | re.S)
DRAGOMAN = f'set -euo pipefail; dragoman() {{ {sys.executable} -m service "$@"; }}\n'


def test_the_commands_make_what_they_say(loop_thread: LoopThread, tiny_models: Path, tmp_path: Path) -> None:
    tool("openssl", "openssl")
    assert len(COMMANDS) == 3
    script = DRAGOMAN + "".join(COMMANDS)
    run = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=patient(60)
    )
    assert run.returncode == 0, run.stderr
    assert read_keys(tmp_path / "keys.toml").names == {"web-shop", "nightly"}
    config = ServerConfig(
        models=tiny_models,
        num_threads=1,
        tls_certificate=tmp_path / "server.crt",
        tls_key=tmp_path / "server.key",
        tls_client_ca=tmp_path / "ca.crt",
        api_keys=tmp_path / "keys.toml",
    )
    tls = Tls(tmp_path / "ca.crt", tmp_path / "client.crt", tmp_path / "client.key")
    with in_process(loop_thread, config) as server:
        for name in ("web-shop", "nightly"):
            key = (tmp_path / f"{name}.key").read_text().strip()
            with Client(server.address, tls=tls, api_key=key) as client:
                assert client.translate(["Hello"], "en", "de")
    assert (tmp_path / "keys.toml").stat().st_mode & 0o077 == 0
