"""The examples of docs/api.md and client/README.md, run as written, except for the port, against the shipped models."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment

DOCUMENTS = [REPOSITORY / path for path in ("docs/api.md", "client/README.md")]
EXAMPLES = [
    example
    for document in DOCUMENTS
    for example in re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
]
SAID = {
    "import Client, MimeType": ["Wo ist der Bahnhof?", "<b>", "Akte", "en", "Mein Bruder"],
    "import AsyncClient": ["Speichern Sie die Datei.", "Mein Bruder"],
    "import Client, Options": ["Wo ist der Bahnhof?"],
    "google.cloud": ["en Wo ist der Bahnhof?", "en Speichern Sie die Datei"],
    "tritonclient": ["Wo ist der Bahnhof? -0.", "Speichern Sie die Datei. -0."],
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess(REPOSITORY / "models")
    yield process
    process.kill()


@pytest.mark.parametrize("client", SAID)
def test_an_example_says_what_it_should(server: ServerProcess, client: str) -> None:
    (example,) = [each for each in EXAMPLES if client in each]
    assert "127.0.0.1:50051" in example
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", example.replace("127.0.0.1:50051", server.address)],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
    assert run.returncode == 0, run.stderr
    place = 0
    for words in SAID[client]:
        place = run.stdout.index(words, place) + len(words)


def test_every_example_is_run() -> None:
    assert len(EXAMPLES) == len(SAID)
