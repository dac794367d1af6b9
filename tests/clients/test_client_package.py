"""The client as an application gets it: built and installed alone, beside the application's own `service` folder."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grpc
import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess
from tests.tiny_bundle import GOLDEN_TEXTS

CLIENT = REPOSITORY / "client"
SITE_PACKAGES = Path(grpc.__file__).parent.parent

APPLICATION = """
import asyncio, json, sys

import export, service
from dragoman_client import AsyncClient, Client, FinishReason, MimeType, Options, Priority, Term

TEXTS = json.loads(sys.argv[2])
OPTIONS = Options(beam_size=1)


def joined(events):
    texts = [""] * len(TEXTS)
    for event in events:
        texts[event.text_index] += event.delta
    return texts


async def ask():
    async with AsyncClient(sys.argv[1]) as client:
        translations = await client.translate(TEXTS, "en", "de", options=OPTIONS, priority=Priority.HIGH)
        return [each.text for each in translations], joined([e async for e in client.stream(TEXTS, "en", "de")])


with Client(sys.argv[1]) as client:
    translations = client.translate(TEXTS, "en", "de", options=OPTIONS, mime_type=MimeType.PLAIN)
    assert all(isinstance(each.finish_reason, FinishReason) for each in translations)
    answers = [[each.text for each in translations], joined(client.stream(TEXTS, "en", "de")), *asyncio.run(ask())]
unwanted = {"google.rpc", "grpc_status", "numpy", "onnxruntime", "click", "tokenizers", "prometheus_client"}
print(json.dumps({
    "answers": answers,
    "owners": [service.OWNER, export.OWNER],
    "unwanted": sorted(unwanted & set(sys.modules)),
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with only what `pip install ./client` puts there, without dependencies and network."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--no-compile", "--target", str(folder), str(CLIENT)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), check=False)
    assert run.returncode == 0, run.stderr
    return folder


def test_it_installs_one_small_typed_package(installed: Path) -> None:
    assert {path.name for path in installed.iterdir()} == {"dragoman_client", "dragoman_client-0.1.0.dist-info"}
    package = installed / "dragoman_client"
    assert {"py.typed", "service_config.json"} <= {path.name for path in package.iterdir()}
    sources = {
        path.relative_to(CLIENT) for path in (CLIENT / "dragoman_client").rglob("*.py*") if path.suffix != ".pyc"
    }
    assert {path.relative_to(installed) for path in package.rglob("*.py*")} == sources
    assert sum(path.stat().st_size for path in installed.rglob("*") if path.is_file()) < 120_000


def test_it_needs_grpcio_and_protobuf_only_and_any_newer_ones(installed: Path) -> None:
    (distribution,) = importlib.metadata.distributions(path=[str(installed)])
    requirements = distribution.requires or []
    assert [re.match(r"\w+", requirement)[0] for requirement in requirements] == ["grpcio", "protobuf"]  # type: ignore[index]
    assert not re.search(r"[<=!~](?!=)|==", " ".join(requirements).replace(">=", ""))


def test_the_messages_need_no_newer_protobuf_than_it_asks_for() -> None:
    (required,) = re.findall(r'"protobuf>=([\d.]+)"', (CLIENT / "pyproject.toml").read_text(encoding="utf-8"))
    for generated in (CLIENT / "dragoman_client" / "pb").glob("*_pb2.py"):
        (version,) = re.findall(r"^# Protobuf Python Version: (\S+)$", generated.read_text(), re.MULTILINE)
        assert version == required, f"{generated.name}; make proto, and ask for that version"


def test_an_application_keeps_its_own_service_folder(installed: Path, server: ServerProcess, tmp_path: Path) -> None:
    for name in ("service", "export"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the application'\n", encoding="utf-8")
    script = tmp_path / "application.py"
    script.write_text(APPLICATION, encoding="utf-8")
    path = os.pathsep.join(map(str, (installed, SITE_PACKAGES)))
    run = subprocess.run(
        [sys.executable, "-S", "-W", "error", str(script), server.address, json.dumps(GOLDEN_TEXTS)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["owners"] == ["the application"] * 2
    assert told["answers"] == [told["answers"][0]] * 4
    assert len(told["answers"][0]) == len(GOLDEN_TEXTS)
    assert told["unwanted"] == []


def test_the_server_takes_the_client_that_lies_beside_it() -> None:
    server, client = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")) for folder in (REPOSITORY, CLIENT)
    )
    assert client["project"]["name"] in {re.match(r"[\w-]+", each)[0] for each in server["project"]["dependencies"]}  # type: ignore[index]
    assert (CLIENT / "LICENSE").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()
