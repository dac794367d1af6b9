"""The examples of the pages on APIs and client/README.md, run but for the port, against the shipped models."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.clients.http_clients import PYTHON
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment

DOCUMENTS = [
    REPOSITORY / path
    for path in (
        "docs/api.md",
        "docs/google.md",
        "docs/triton.md",
        "docs/libretranslate.md",
        "docs/deepl.md",
        "client/README.md",
    )
]
EXAMPLES = [
    example
    for document in DOCUMENTS
    for example in re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
]
# What each prints, in order: those of our own environment, and those over HTTP, of the environment of the clients.
SAID = {
    "import Client, MimeType": ["Wo ist der Bahnhof?", "<b>", "Akte", "en", "Mein Bruder"],
    "import AsyncClient": ["Speichern Sie die Datei.", "Mein Bruder"],
    "import Client, Options": ["Wo ist der Bahnhof?"],
    "import grpc\nfrom google.cloud": ["en Wo ist der Bahnhof?", "en Speichern Sie die Datei"],
    "tritonclient": ["Wo ist der Bahnhof? -0.", "Speichern Sie die Datei. -0."],
}
SAID_OVER_HTTP = {
    "libretranslatepy": ["Wo ist der Bahnhof?"],
    "deepl": ["Wo ist der Bahnhof?"],
    "TranslationServiceRestTransport": ["Wo ist der Bahnhof?", "Wo ist der Bahnhof?"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(REPOSITORY / "models", has_http=True) as process:
        yield process


@pytest.mark.parametrize("client", [*SAID, *SAID_OVER_HTTP])
def test_an_example_says_what_it_should(server: ServerProcess, client: str) -> None:
    (example,) = [each for each in EXAMPLES if client in each]
    is_http = client in SAID_OVER_HTTP
    python = str(PYTHON) if is_http else sys.executable
    written, address = ("127.0.0.1:8080", server.http_url[7:]) if is_http else ("127.0.0.1:50051", server.address)
    assert written in example
    run = subprocess.run(
        [python, "-W", "ignore", "-c", example.replace(written, address)],
        cwd=REPOSITORY,
        env=None if is_http else environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
    assert run.returncode == 0, run.stderr
    place = 0
    for words in (SAID | SAID_OVER_HTTP)[client]:
        place = run.stdout.index(words, place) + len(words)


def test_every_example_is_run() -> None:
    assert len(EXAMPLES) == len(SAID) + len(SAID_OVER_HTTP)
