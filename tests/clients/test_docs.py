"""The commands and Python examples in the documents, run but for hosts and ports, against the shipped models."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.http_clients import PYTHON
from tests.doc_blocks import PAGES, Block, blocks_of
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment, free_port
from tests.tools import tool

WITH_COMMANDS = [page for page in PAGES if any(block.is_run for block in blocks_of(page))]
SERVE = re.compile(r"^((?:\S*dragoman|python -m service) serve\b.*)$", re.MULTILINE)
# What the commands read, but for a checkout's own files.
FILES = {
    ".curlrc": "fail-with-body\n",
    **dict.fromkeys(("book.txt", "corpus.en.txt", "lines.txt", "SOURCES", "TEXTS"), "The file.\nClose the file.\n"),
    "PAIRS.tsv": "Where is the train station?\tWo ist der Bahnhof?\n",
    "SETS": "train\ntrain\n",
    "page.html": "<p>Where is the <b>train station</b>?</p>",
    "t.csv": "title,text\nThe file,Close the file.\n",
    "a.csv": "text\nClose the file.\n",
    "reviews.jsonl": '{"body": "Where is the train station?"}\n',
    **dict.fromkeys(("t.jsonl", "crawl/a.jsonl"), '{"text": "Close the file."}\n'),
    "a.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Close the file."\nmsgstr ""\n',
    "app.json": '{"title": "Close the file.", "icon": "The file", "meta": {"x": "The file"}}',
}
LINKS = {
    ".venv": sys.prefix,
    "models/en-de/1": "models/en-de/1",
    "CHECKPOINT": "checkpoints/en-de",
    "README.md": "README.md",
    "manual.docx": "tests/field/files/link-note.docx",
}
DOCUMENTS = [
    *(f"docs/{name}.md" for name in ("api", "google", "triton", "libretranslate", "deepl")),
    "client/README.md",
]
EXAMPLES = [block.text for document in DOCUMENTS for block in blocks_of(Path(document)) if block.language == "python"]
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    glossaries = tmp_path_factory.mktemp("glossaries")
    (glossaries / "NAME.en-de.tsv").write_text("file\tAkte\n")
    with ServerProcess(REPOSITORY / "models", "--glossaries", str(glossaries), has_http=True) as process:
        yield process


def ports_of(server: ServerProcess) -> dict[int, int]:
    """Return the server's ports by those that the documents have."""
    return {50051: server.port, 8080: server.http_port, 9464: server.metrics_port, 9465: server.admin_port}


def fill(folder: Path) -> None:
    """Make a folder look like a checkout, with files of the names that the documents use."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for name, target in LINKS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(REPOSITORY / target)


def run(block: Block, folder: Path, ports: dict[int, int]) -> None:
    """Run a block's commands, for servers on these ports of this machine in place of the usual ones.

    A server that a block starts runs beside the rest of it. A command must not fail, nor print other than is shown.
    """
    text, shown = block.text, ".*"
    if block.language == "console":
        command = r"^\$ ((?:.*\\\n)*.*\n)"
        output = re.escape(re.sub(command, "", text, flags=re.MULTILINE).strip())
        shown = re.sub(r"(\\ )?\\.\\.\\.", ".*", output)
        text = "".join(re.findall(command, text, re.MULTILINE))
    for usual, port in ports.items():
        text = re.sub(rf"[\w.-]+:{usual}\b", f"127.0.0.1:{port}", text)
    beside = r'coproc exec \1\ntrap "kill -9 $COPROC_PID" EXIT\nread -r ready <&${COPROC[0]}'
    script = "set -euo pipefail\n" + SERVE.sub(beside, text.replace("/VERSION", "/1"))
    variables = {
        "PATH": f"{sys.prefix}/bin:{environment()['PATH']}",
        "HOME": str(folder),
        "PIP_REQUIRE_HASHES": "1",  # pip installs nothing into our .venv, should a block lack its mark
        "DRAGOMAN_SERVER": f"127.0.0.1:{ports[50051]}",
        "DRAGOMAN_SERVE_PORT": str(ports[50051]),
        "DRAGOMAN_SERVE_METRICS_PORT": str(ports[9464]),
        "DRAGOMAN_SERVE_ADMIN_PORT": str(ports[9465]),
    }
    done = subprocess.run(
        ["timeout", "--signal", "KILL", f"{patient(60):.0f}", "bash", "-c", script],  # with all that bash started
        cwd=folder,
        env=environment() | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"mend it, or mark it (tests/doc_blocks.py):\n{script}\n{done.stdout}{done.stderr}"
    assert re.fullmatch(shown, done.stdout.strip(), re.DOTALL), f"{block.text}\nprints\n{done.stdout}"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
def test_the_commands_of_a_page_do_what_it_says(server: ServerProcess, page: Path, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(page) if block.is_run]
    commands = "".join(block.text for block in blocks)
    if "curl " in commands:
        tool("curl", "curl")
    if "openssl " in commands:
        tool("openssl", "openssl")
    ports = ports_of(server)
    if any(SERVE.search(block.text) for block in blocks):
        ports = {usual: free_port() for usual in ports}
    fill(tmp_path)
    for block in blocks:
        run(block, tmp_path, ports)


@pytest.mark.parametrize(
    "text", ["$ false\n$ true\n", "$ curl http://127.0.0.1:8080/no\n", "$ dragoman serve\n", "$ echo 1 \\\n  2\n1 3\n"]
)
def test_a_block_that_fails_or_prints_something_else_is_found(server: ServerProcess, text: str, tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(AssertionError):
        run(Block("console", text), tmp_path, ports_of(server))  # whose ports are taken
    run(Block("console", "$ echo 1 \\\n  2 3\n1 2 ...\n"), tmp_path, ports_of(server))


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
