"""HTTP clients that nobody here wrote, as they are: the JDK's, curl's with an offer of HTTP/2, and h2load."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.patience import patient
from tests.servers import ServerProcess
from tests.tools import tool

ASKED = json.dumps({"text": "station", "source_language_code": "en", "target_language_code": "de"})


def run(*command: str | Path, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_of_the_jdk(server: ServerProcess) -> None:
    """Every POST was a 400: its offer to upgrade cost it its body."""
    java = tool("java", "default-jdk-headless")
    lines = run(java, Path(__file__).parent / "Translate.java", server.http_url).splitlines()
    assert len(lines) == 20
    assert {line.rsplit(" ", 1)[0] for line in lines} == {"200 HTTP_1_1"}


@pytest.mark.parametrize("more", [(), ("--header", "Transfer-Encoding: chunked"), ("--header", "Expect: 100-continue")])
def test_curl_with_an_offer_of_http_2(server: ServerProcess, more: tuple[str, ...]) -> None:
    curl = tool("curl", "curl")
    asked = ("--silent", "--http2", "--header", "Content-Type: application/json", "--data", "@-", *more)
    answer = run(curl, *asked, f"{server.http_url}/v1/translate", given=ASKED)
    assert json.loads(answer)["translations"][0]["text"]


@pytest.mark.parametrize("pipelined", [1, 8])
def test_h2load_over_http_1(server: ServerProcess, tmp_path: Path, pipelined: int) -> None:
    h2load = tool("h2load", "nghttp2-client")
    (tmp_path / "asked.json").write_text(ASKED)
    counts = ("-n", "400", "-c", "8", "-m", str(pipelined), "-d", str(tmp_path / "asked.json"))
    said = run(h2load, "--h1", *counts, "-H", "Content-Type: application/json", f"{server.http_url}/v1/translate")
    assert re.search(r"400 done, 400 succeeded, 0 failed, 0 errored, 0 timeout", said), said
