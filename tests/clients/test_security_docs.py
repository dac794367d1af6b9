"""The commands of docs/security.md, run in sequence, create files that a server and its callers can use."""

import re
import subprocess
import sys
from pathlib import Path

from dragoman_client import Client, Tls
from service.calls.keys import read_keys
from tests.patience import patient
from tests.servers import REPOSITORY, Serve, environment
from tests.tools import tool

COMMANDS = re.findall(r"^```bash\n(.*?)^```$", (REPOSITORY / "docs" / "security.md").read_text(), re.M | re.S)
DRAGOMAN = f'set -euo pipefail; dragoman() {{ {sys.executable} -m service "$@"; }}\n'


def test_the_commands_make_what_they_say(serve: Serve, tmp_path: Path) -> None:
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
