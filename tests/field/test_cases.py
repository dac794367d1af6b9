"""Reports from the field, each tried on the shipped models: `cases.jsonl` has one a line, `files` the documents.

A case holds if every pattern of `expect` is found in its outcome and none of `must_not` is. What the outcome is depends
on `how`:

| how | outcome |
| --- | --- |
| `text`, `html` | the translation of `input` by `POST /v1/translate`; then its flags, and the number of segments |
| `same` | whether `input` and `as` have the same translation |
| `count` | whether `input` and its translation have as many `sign` |
| `cut` | the number of sentences in `input`, a text in `language` |
| `file` | what `dragoman translate` says of `file`, and the document that it writes; of an archive a `part` |
| `msgfmt` | the same, and what `msgfmt -c` says of the translated catalogue |
| `socket` | what the HTTP port answers to the strings of `input`, sent one after another |
| `http`, `form` | the status and body of the answer to one request |

The inputs were written for these tests. The patterns tell bytes and structure, not wording.
"""

import contextlib
import json
import re
import socket
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from service.cli.main import dragoman
from service.config.server_config import ServerConfig
from service.domain.translation import SplitSentences
from service.text.sentences import pieces
from tests.patience import patient
from tests.servers import REPOSITORY, InProcessServer, LoopThread, in_process
from tests.tools import tool

FOLDER = Path(__file__).parent
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "cases.jsonl").read_text(encoding="utf-8").splitlines()
]
ARCHIVES = (".docx", ".docm", ".dotx", ".odt", ".pptx", ".xlsx")
TIMEOUT_SECONDS = patient(30.0)
QUIET_SECONDS = patient(0.2)  # a second answer would come at once
# The command line leaves its input open until the process ends.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def server(loop_thread: LoopThread) -> Iterator[InProcessServer]:
    with in_process(loop_thread, ServerConfig(models=REPOSITORY / "models", http_port=0)) as running:
        yield running


class Tried:
    """The outcomes of cases on a server; documents are written to `folder`."""

    def __init__(self, server: InProcessServer, folder: Path) -> None:
        self._server, self._folder = server, folder

    def outcome(self, case: dict[str, Any]) -> str:
        way = {"text": "called", "html": "called", "msgfmt": "file"}.get(case["how"], case["how"])
        return str(getattr(self, way)(case, **case.get("option", {})))

    def called(self, case: dict[str, Any], **fields: Any) -> str:
        mime_type = "text/html" if case["how"] == "html" else "text/plain"
        answer = self._translated(case["input"], mime_type, fields)
        if isinstance(answer, str):
            return answer
        segments = answer.get("segments", [])
        flags = {flag for each in segments for flag in each["flags"]}
        flags |= {each["finish_reason"] for each in segments} - {"stop"}
        return f"{answer['text']}\n#flags={','.join(sorted(flags))}\n#segments={len(segments)}"

    def same(self, case: dict[str, Any], **fields: Any) -> str:
        mime_type, other = fields.pop("mime", "text/plain"), fields.pop("as")
        found = [self._text(text, mime_type, fields) for text in (case["input"], other)]
        return "same" if found[0] == found[1] else f"different: {found[0]!r} | {found[1]!r}"

    def count(self, case: dict[str, Any], sign: str, mime: str = "text/plain") -> str:
        found = self._text(case["input"], mime, {})
        return "same" if found.count(sign) == case["input"].count(sign) else f"different: {found!r}"

    def cut(self, case: dict[str, Any], language: str) -> str:
        return str(sum(piece.is_segment for piece in pieces(case["input"], language, SplitSentences.ON)))

    def file(
        self,
        case: dict[str, Any],
        arguments: tuple[str, ...] = (),
        encoding: str = "utf-8",
        part: tuple[str, ...] = ("word/document.xml",),
        msgfmt: tuple[str, ...] = (),
    ) -> str:
        source = FOLDER / "files" / case["file"]
        target = self._folder / source.name
        languages = ("--to", "de") if "--from" in arguments else ("--to", "de", "--from", "en")
        files = ("-i", str(source), "-o", str(target))
        command = ["translate", "--server", self._server.address, *languages, *files, *arguments]
        run = CliRunner().invoke(dragoman, command)
        text = f"#rc={run.exit_code}\n#stderr={' / '.join(run.stderr.splitlines())}\n"
        if not target.exists():
            return text
        if source.suffix in ARCHIVES:
            with zipfile.ZipFile(target) as archive:
                names = {name.replace("\\", "/").lower(): name for name in archive.namelist()}
                text += "\n".join(archive.read(names[each]).decode() for each in part)
        else:
            text += target.read_bytes().decode(encoding).replace("\r", "␍")
        if case["how"] == "msgfmt":
            text += "\n#msgfmt=" + "; ".join(_checked(target, *msgfmt))
        return text

    def socket(self, case: dict[str, Any]) -> str:
        host, port = self._server.http_url.removeprefix("http://").split(":")
        found = b""
        with socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as connection:
            for number, part in enumerate(case["input"], start=1):
                with contextlib.suppress(OSError):  # the server has closed it, which the outcome shows
                    connection.sendall(part.encode())
                found += _received(connection, TIMEOUT_SECONDS if number == len(case["input"]) else QUIET_SECONDS)
        return found.decode().replace("\r", "")

    def http(self, case: dict[str, Any], path: str, method: str = "POST", headers: dict[str, str] | None = None) -> str:
        data = bytes.fromhex(case["bytes"]) if "bytes" in case else case.get("input", "").encode() or None
        status, body = self._requested(path, data, headers or {}, method)
        return f"status {status}\n{body}"

    def form(self, case: dict[str, Any], path: str, disposition: str) -> str:
        lines = [
            *(b"--b", b'Content-Disposition: form-data; name="source"', b"", b"en"),
            *(b"--b", b'Content-Disposition: form-data; name="target"', b"", b"de"),
            *(b"--b", f'Content-Disposition: form-data; name="file"; {disposition}'.encode()),
            *(b"Content-Type: application/octet-stream", b"", (FOLDER / "files" / case["file"]).read_bytes()),
            *(b"--b--", b""),
        ]
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        status, body = self._requested(path, b"\r\n".join(lines), headers)
        return f"status {status}\n{body}"

    def _text(self, text: str, mime_type: str, fields: dict[str, Any]) -> str:
        answer = self._translated(text, mime_type, fields)
        assert not isinstance(answer, str), answer
        return str(answer["text"])

    def _translated(self, text: str, mime_type: str, fields: dict[str, Any]) -> dict[str, Any] | str:
        """Return the translation of a text, or the status and body of an error."""
        body = {
            "text": text,
            "source_language_code": "en",
            "target_language_code": "de",
            "mime_type": mime_type,
            "return_segments": True,
            **fields,
        }
        data = json.dumps(body).encode()
        status, answer = self._requested("/v1/translate", data, {"Content-Type": "application/json"})
        if status != 200:
            return f"status {status}\n{answer}"
        [translation] = json.loads(answer)["translations"]
        return dict(translation)

    def _requested(
        self, path: str, data: bytes | None, headers: dict[str, str], method: str = "POST"
    ) -> tuple[int, str]:
        request = urllib.request.Request(self._server.http_url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def _received(connection: socket.socket, timeout_seconds: float) -> bytes:
    """Return what arrives until the other side closes, or is quiet for a moment after it has sent something."""
    found = b""
    with contextlib.suppress(OSError):
        connection.settimeout(timeout_seconds)
        while part := connection.recv(65_536):
            found += part
            connection.settimeout(QUIET_SECONDS)
    return found


def _checked(catalogue: Path, *options: str) -> list[str]:
    """Return what gettext says of a catalogue, but of fields that its header lacks."""
    command = [tool("msgfmt", "gettext"), "-c", *options, "-o", "/dev/null", str(catalogue)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS).stderr
    return [
        line.split(": ", 1)[-1]
        for line in told.splitlines()
        if "missing in header" not in line and "fatal error" not in line
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_it_holds(case: dict[str, Any], server: InProcessServer, tmp_path: Path) -> None:
    outcome = Tried(server, tmp_path).outcome(case)
    missing = [each for each in case["expect"] if not re.search(each, outcome, re.M | re.S)]
    unwanted = [each for each in case["must_not"] if re.search(each, outcome, re.M | re.S)]
    assert (missing, unwanted) == ([], []), outcome
