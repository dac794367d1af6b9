"""Large documents, over HTTP and by the command line: that they come through, and what they take of memory."""

import http.client
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from service.documents import DocumentOptions, open_document
from tests.http_post import form_of
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment

SECONDS = 300.0  # for one document
_LOOK_SECONDS = 0.01

# Peaks of resident memory. Measured with these documents on two cores: of the server 155 MiB over HTTP and 130 with the
# command line, of which it has 125 before its first call; of the process that reads one 80; of the command line 105.
MOST_OF_SERVER = 230
MOST_OF_READER = 150
MOST_OF_COMMAND_LINE = 170

# 5 MB each, mostly of markup, and with a few texts many times, which the server has in its cache.
DOCUMENTS = {
    "a.md": "".join(
        f"Where is **station** {number % 10}?\n\n```\n{('code ' * 15 + chr(10)) * 10}```\n\n" for number in range(6_400)
    ),
    "a.xliff": '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    + "".join(
        f'<trans-unit id="{number}"><source>Where is <g id="1">station</g> {number % 10}?</source>'
        f"<note>{'n' * 720}</note></trans-unit>\n"
        for number in range(6_400)
    )
    + "</body></file></xliff>",
}


class Peaks:
    """The most memory in MiB that a process had at once, by a part of its command line; others are ""."""

    def __init__(self, *parts: str) -> None:
        self.most: dict[str, float] = defaultdict(float)
        self._parts = parts

    def look(self, root: psutil.Process) -> None:
        """Look at a process and at those that it has started."""
        for process in (root, *root.children(recursive=True)):
            try:
                line = " ".join(process.cmdline())
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            except (psutil.Error, OSError):
                continue  # it has ended
            part = next((each for each in self._parts if each in line), "")
            if found := re.search(r"VmHWM:\s+(\d+) kB", status):
                self.most[part] = max(self.most[part], int(found[1]) / 1024)


@contextmanager
def watched(pid: int, *parts: str) -> Iterator[Peaks]:
    """Watch a process, and those that it starts, during the `with` block."""
    peaks, is_over = Peaks(*parts), threading.Event()

    def look() -> None:
        root = psutil.Process(pid)
        while not is_over.wait(_LOOK_SECONDS):
            try:
                peaks.look(root)
            except psutil.Error:
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


@pytest.fixture
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, "--cache-mib", "16", has_http=True) as process:
        yield process


def check(name: str, written: bytes) -> None:
    """Check that what came back is the document with all its texts translated."""
    before = open_document(name, DOCUMENTS[name].encode(), DocumentOptions(target="de"))
    after = open_document(name, written, DocumentOptions(target="de", has_all=True))
    assert len(after.texts) == len(before.texts) > 5_000
    assert len(written) > len(DOCUMENTS[name])
    if name.endswith(".md"):
        assert not {each.text for each in after.texts} & {each.text for each in before.texts}
        assert written.count(b"code ") == DOCUMENTS[name].count("code ")
    else:
        assert written.count(b"<target") == len(before.texts)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_large_document_over_http_takes_little_memory(server: ServerProcess, name: str) -> None:
    fields = {"source_language_code": "en", "target_language_code": "de"}
    form, kind = form_of(name, DOCUMENTS[name], fields)
    assert len(DOCUMENTS[name]) > 5 * 10**6
    connecting = closing(http.client.HTTPConnection(server.http_url[7:], timeout=patient(SECONDS)))
    with watched(server.process.pid, "service.documents.child") as peaks, connecting as connection:
        connection.request("POST", "/v1/files", form, {"content-type": kind})
        response = connection.getresponse()
        written = response.read()
    assert response.status == 200, written[:1000]
    check(name, written)
    assert 0 < peaks.most[""] < MOST_OF_SERVER
    assert 0 < peaks.most["service.documents.child"] < MOST_OF_READER


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_large_document_by_the_command_line_takes_little_memory(
    server: ServerProcess, name: str, tmp_path: Path
) -> None:
    given, made = tmp_path / name, tmp_path / f"out-{name}"
    given.write_text(DOCUMENTS[name], encoding="utf-8")
    command = ["translate", "--server", server.address, "--from", "en", "--to", "de", "-i", str(given), "-o", str(made)]
    process = subprocess.Popen(
        [sys.executable, "-m", "service", *command], cwd=REPOSITORY, env=environment(), stderr=subprocess.PIPE
    )
    with watched(process.pid) as own, watched(server.process.pid) as peaks:
        _, errors = process.communicate(timeout=patient(SECONDS))
    assert (process.returncode, errors[:600]) == (0, b"")
    check(name, made.read_bytes())
    assert 0 < own.most[""] < MOST_OF_COMMAND_LINE
    assert 0 < peaks.most[""] < MOST_OF_SERVER
