"""Clients of other APIs, unmodified, against server processes. What is refused, and how, is tested in tests/api.

Each module of checks is a program that imports none of our code. Those over HTTP run in the environment of
http_clients.txt; those over gRPC can't share a process with our stubs, as both describe the same messages.
"""

import functools
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from service.calls.keys import Quotas, key_lines
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as triton_pb
from tests.clients.http_clients import PYTHON, checks_of, run_checks
from tests.http_caller import call
from tests.key_files import ALICE, BOB
from tests.servers import TIMEOUT_SECONDS, ServerProcess
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations, write_tiny_bundle

MODULES = {  # the program that runs each
    "deepl_checks": PYTHON,
    "libretranslate_checks": PYTHON,
    "google_rest_checks": PYTHON,
    "triton_http_checks": PYTHON,
    "google_checks": Path(sys.executable),
    "triton_checks": Path(sys.executable),
}
GLOSSARIES = {
    "files.en-de.tsv": "file\tAkte\tcase\nDragoman\n",
    "long.en-de.tsv": "".join(f"term {number}\tWort\n" for number in range(2500)),
    "several.fr-it.tsv": "station\tBahnsteig\n",
    "several.it-fr.tsv": "Bahnsteig\tplatform\n",
}
TEXTS = ("station", "Grüße an alle! & 100%", "Where is the train station?", "Save the file.")

pytestmark = pytest.mark.timeout(240)  # the first test pays for both servers, and the first of a module for its checks


class Servers(NamedTuple):
    """One for everybody, and one with keys, whose callers load its models; and what the checks are told of them."""

    open: ServerProcess
    keyed: ServerProcess
    settings: dict[str, object]


@pytest.fixture(scope="module")
def servers(tiny_versions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Serve `tiny` in versions 1 and 2, and `many`, with glossaries; and both without the first version."""
    folder = tmp_path_factory.mktemp("foreign")
    models, fewer, glossaries, keys = (folder / name for name in ("models", "fewer", "glossaries", "keys.toml"))
    write_tiny_bundle(fewer / "many" / "1", "many", seed=9, among="fr it es pt")
    shutil.copytree(tiny_versions / "2", fewer / "tiny" / "2")
    shutil.copytree(fewer, models)
    shutil.copytree(tiny_versions / "1", models / "tiny" / "1")
    glossaries.mkdir()
    for name, lines in GLOSSARIES.items():
        (glossaries / name).write_text(lines, encoding="utf-8")
    quotas = {"alice": (ALICE, Quotas()), "bob": (BOB, Quotas(tokens_per_minute=1))}
    keys.write_text("".join(key_lines(key, name, None, given) for name, (key, given) in quotas.items()))
    keys.chmod(0o600)
    for name, pb in (("google", google_pb), ("triton", triton_pb)):
        (folder / f"{name}.pb").write_bytes(pb.DESCRIPTOR.serialized_pb)
    limits = ("--max-slots", "8", "--max-waiting", "1100")
    explicit = ("--model-control", "explicit", "--load-model", "tiny", "--api-keys", str(keys))
    with (
        ServerProcess(models, "--max-versions", "2", "--glossaries", str(glossaries), *limits, has_http=True) as server,
        ServerProcess(fewer, *explicit, *limits, has_http=True) as keyed,
    ):
        settings = {
            "address": server.address,
            "url": server.http_url,
            "metrics": f"http://127.0.0.1:{server.metrics_port}/metrics",
            "keyed_address": keyed.address,
            "keyed_url": keyed.http_url,
            "keyed_pid": keyed.process.pid,
            "key": ALICE,
            "limited_key": BOB,
            "expected": dict(zip(TEXTS, translated(server, *TEXTS), strict=True)),
            "golden_texts": GOLDEN_TEXTS,
            "golden": {version: golden_translations(tiny_versions / version) for version in ("1", "2")},
            "descriptors": str(folder),
            "seconds": round(TIMEOUT_SECONDS),
        }
        yield Servers(server, keyed, settings)


def translated(server: ServerProcess, *texts: str) -> list[str]:
    """Return what our own API answers."""
    asked = {"texts": texts, "source_language_code": "en", "target_language_code": "de"}
    answer = call(server.http_url, "POST", "/v1/translate", asked).document
    return [each["text"] for each in answer["translations"]]


@pytest.fixture(scope="module")
def outcomes(servers: Servers) -> Callable[[str], dict[str, str]]:
    """Return a function that runs the checks of a module once."""
    return functools.cache(lambda module: run_checks(module, checks_of(module), servers.settings, MODULES[module]))


@pytest.mark.parametrize(("module", "check"), [(module, check) for module in MODULES for check in checks_of(module)])
def test_the_client_works_unmodified(outcomes: Callable[[str], dict[str, str]], module: str, check: str) -> None:
    assert not outcomes(module)[check], outcomes(module)[check]


def test_checks_that_fail_are_noticed(servers: Servers, tmp_path: Path) -> None:
    """The positive control: a message with a field of another number, other translations, and a wrong key."""
    wrong = FileDescriptorProto.FromString(google_pb.DESCRIPTOR.serialized_pb)
    next(each for each in wrong.message_type if each.name == "TranslateTextRequest").field[0].number += 1000
    (tmp_path / "google.pb").write_bytes(wrong.SerializeToString())
    others = {"descriptors": str(tmp_path), "golden": {version: ["a", "b", "c"] for version in ("1", "2")}, "key": "no"}
    for module, names in {
        "google_checks": ["check_every_field_is_googles"],
        "triton_http_checks": ["check_infer_in_binary", "check_infer_in_json", "check_keys"],
    }.items():
        assert all(run_checks(module, names, servers.settings | others, MODULES[module]).values())


def test_no_check_left_an_error_in_a_server_s_log(servers: Servers, outcomes: Callable[[str], dict[str, str]]) -> None:
    assert outcomes("triton_checks")  # which sends SIGHUP
    for server in servers[:2]:
        server.signal(signal.SIGTERM)
        code, _, log = server.wait()
        assert (code, "Traceback" in log, "ERROR" in log) == (0, False, False), log
    assert "SIGHUP changes no models" in log
