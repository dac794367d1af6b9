"""Each check of `dragoman doctor`, where all is well and where it is not."""

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from service.calls.keys import key_lines
from service.cli.doctor import bundles, files, machine
from service.cli.doctor.finding import Finding, Status
from service.cli.main import run as run_command
from service.config.server_config import ServerConfig
from service.engine.cpus import available_cpus
from service.engine.runtime.kernels import CHOICE, PATH
from tests.certificates import Authority
from tests.key_files import ALICE, NO_QUOTAS, write_keys
from tests.servers import free_port
from tests.tiny_bundle import write_tiny_bundle

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
MIB = 2**20


def config(**changes: Any) -> ServerConfig:
    return replace(ServerConfig(port=0, metrics_port=0, admin_port=-1), **changes)


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


def statuses(findings: Iterator[Finding]) -> list[Status]:
    return [finding.status for finding in findings]


def written(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_text(text)
    return path


def test_cpus(tmp_path: Path) -> None:
    cpuinfo = written(tmp_path, "processor\t: 0\nmodel name\t: A CPU\n")
    fine = only(machine.cpus(config(num_threads=1), cpuinfo))
    assert fine.status is OK
    assert fine.value.startswith(f"A CPU, {available_cpus()} of ")
    many = only(machine.cpus(config(num_threads=1024), tmp_path / "none"))
    assert many.status is WARN
    assert f"--num-threads to {available_cpus()}" in many.advice


def test_load() -> None:
    assert only(machine.load(0.1)).status is OK
    busy = only(machine.load(4.0 * (os.cpu_count() or 1)))
    assert busy.status is WARN
    assert busy.value.endswith(f"in the last minute; there are {os.cpu_count()}")


def test_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert only(machine.kernels()).status is OK
    monkeypatch.setenv(CHOICE, "portable")
    slow = only(machine.kernels())
    assert (slow.status, slow.advice) == (WARN, f"unset {CHOICE}.")
    monkeypatch.setenv(PATH, str(tmp_path / "gone.so"))
    assert only(machine.kernels()).status is FAIL


@pytest.mark.parametrize(
    ("available_mib", "sizes", "status"),
    [(4096, [100 * MIB], OK), (700, [200 * MIB, 100 * MIB], WARN), (100, [200 * MIB], FAIL), (100, [], OK)],
)
def test_memory(tmp_path: Path, available_mib: int, sizes: list[int], status: Status) -> None:
    meminfo = written(tmp_path, f"MemTotal: 99 kB\nMemAvailable: {available_mib * 1024} kB\n")
    assert only(machine.memory(sizes, config(), meminfo)).status is status


@pytest.mark.parametrize(
    ("chosen", "size", "status"),
    [("always [madvise] never", MIB, OK), ("always madvise [never]", MIB, OK), ("madvise [never]", 99 * MIB, WARN)],
)
def test_huge_pages(tmp_path: Path, chosen: str, size: int, status: Status) -> None:
    assert only(machine.huge_pages([size], written(tmp_path, chosen))).status is status
    assert list(machine.huge_pages([size], tmp_path / "none")) == []


def test_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (20_000, 20_000))
    assert only(machine.open_files(config(max_connections=1))).status is OK
    few = only(machine.open_files(config(max_connections=1_000_000, http_port=0)))
    assert few.status is WARN
    assert "ulimit -n 2000256" in few.advice


def test_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert only(machine.temporary_files(config())).status is OK
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert only(machine.temporary_files(config())).status is WARN
    assert only(machine.temporary_files(config(http_port=0))).status is FAIL


def test_clock() -> None:
    assert only(machine.clock(0)).status is OK
    assert only(machine.clock(5)).status is WARN
    assert list(machine.clock(-1)) == []  # a sandbox forbids the question
    assert len(list(machine.clock())) <= 1  # the machine's own


def test_locale() -> None:
    assert only(machine.texts()).status is OK
    assert only(machine.texts("ascii")).status is WARN


def test_ports_are_free_or_it_is_said_who_has_them() -> None:
    assert statuses(machine.ports(config(http_port=0, admin_port=0))) == [OK] * 4
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        finding = next(iter(machine.ports(config(port=port))))
    assert finding.status is FAIL
    assert f"127.0.0.1:{port}" in finding.value
    assert f"process {os.getpid()}" in finding.advice
    assert machine.listener(port) == ""


def test_tls(tmp_path: Path) -> None:
    assert list(files.certificate(config())) == []
    pair = Authority().pair(ends_days=100)
    certificate, key = pair.write(tmp_path)
    secure = config(tls_certificate=certificate, tls_key=key)
    assert only(files.certificate(secure)).status is OK
    assert only(files.certificate(secure, datetime.now(UTC) + timedelta(days=95))).status is WARN
    key.chmod(0o644)
    assert statuses(files.certificate(secure)) == [OK, WARN]
    _, other = Authority().pair().write(tmp_path, "other")
    mismatch = only(files.certificate(config(tls_certificate=certificate, tls_key=other)))
    assert mismatch.status is FAIL
    assert "is not the key of" in mismatch.value


def test_api_keys(tmp_path: Path) -> None:
    path = write_keys(tmp_path, alice=ALICE)
    assert only(files.other_settings(config(api_keys=path))).status is OK
    path.chmod(0o644)
    readable = list(files.other_settings(config(api_keys=path)))
    assert [finding.status for finding in readable] == [OK, WARN]
    assert "chmod o-r" in readable[1].value
    path.write_text("nonsense")
    assert only(files.other_settings(config(api_keys=path))).status is FAIL


def test_names_that_a_key_may_use_and_that_nothing_has(tmp_path: Path) -> None:
    path, glossaries = tmp_path / "keys.toml", tmp_path / "glossaries"
    glossaries.mkdir()
    (glossaries / "brand.en-de.tsv").write_text("window\tFenster\n", encoding="utf-8")
    granted = {"models": ["en-de", "en-dee"], "glossaries": ["brand", "brnd"]}
    path.write_text(key_lines(ALICE, "shop", None, NO_QUOTAS, granted))
    found = list(files.granted_names(config(api_keys=path, glossaries=glossaries), {"en-de"}))
    assert [each.status for each in found] == [WARN, WARN]
    assert "key shop may use glossary 'brnd', which this server does not have; it has brand" in found[0].value
    assert "key shop may use model 'en-dee', which this server does not have; it has en-de" in found[1].value
    assert list(files.granted_names(config(), {"en-de"})) == []
    path.write_text("broken")
    assert list(files.granted_names(config(api_keys=path), {"en-de"})) == []  # which the other check tells


def test_other_settings(tmp_path: Path) -> None:
    assert list(files.other_settings(config())) == []
    assert only(files.other_settings(config(placeholder=("[A-Z]+",)))).status is OK
    assert only(files.other_settings(config(placeholder=("(",)))).status is FAIL


def test_glossaries(tmp_path: Path) -> None:
    (tmp_path / "wrong.en-de.tsv").write_text("one\ttwo\tthree\tfour\tfive\n")
    assert list(files.glossaries(config(), [])) == []
    assert only(files.glossaries(config(glossaries=tmp_path / "gone"), [])).status is FAIL
    assert statuses(files.glossaries(config(glossaries=tmp_path), [])) == [OK, WARN]  # which the server would log


def test_glossaries_for_pairs_that_no_model_has(tmp_path: Path) -> None:
    """Those of a similar language, or of a pair that two models translate, can be used."""
    for source, target in (("de", "en"), ("en", "it")):
        write_tiny_bundle(tmp_path / "models" / f"{source}-{target}" / "1", f"{source}-{target}", source, target)
    (tmp_path / "glossaries").mkdir()
    for name in ("names.de-en", "names.de_AT-en_GB", "names.de-it", "names.en-de", "names.it-en", "other.en-fr"):
        (tmp_path / "glossaries" / f"{name}.tsv").write_text("SAP\n")
    settings = config(models=tmp_path / "models", glossaries=tmp_path / "glossaries")

    def unused(settings: ServerConfig) -> list[str]:
        first, *others = files.glossaries(settings, bundles.found_bundles(settings)[0])
        assert first.status is OK
        assert {each.status for each in others} == {WARN}
        return [each.value.removesuffix(", which no model translates") for each in others]

    directly = ["names is from en into de", "names is from it into en", "other is from en into fr"]
    assert unused(settings) == directly
    without = replace(settings, pivot_language=("none",))
    assert unused(without) == ["names is from de into it", *directly]


def test_onnxruntime() -> None:
    assert only(machine.onnxruntime(config())).status is OK
    assert statuses(machine.onnxruntime(config(), ["onnxruntime", "onnxruntime-gpu"])) == [FAIL, OK]
    assert statuses(machine.onnxruntime(config(device="cuda"))) == [FAIL]


def test_gpu(tmp_path: Path) -> None:
    assert list(machine.gpu(config(), tmp_path)) == []
    assert statuses(machine.gpu(config(device="cuda"), tmp_path, "libnone.so.1")) == [FAIL, FAIL]
    (tmp_path / "nvidia0").touch()
    assert only(machine.gpu(config(), tmp_path)).status is OK
    assert statuses(machine.gpu(config(device="cuda"), tmp_path, "libc.so.6")) == [OK]


def test_bundles(tiny_models: Path, tmp_path: Path) -> None:
    found, faults = bundles.found_bundles(config(models=tiny_models))
    assert faults == []
    assert only(bundles.bundles(config(), found, loads=False)).status is OK
    assert only(bundles.bundles(config(), found, loads=True)).value.endswith("translates its test sentences")
    assert only(bundles.bundles(config(device="cuda"), found, loads=False)).status is FAIL
    assert list(bundles.pairs(found)) == []
    _, faults = bundles.found_bundles(config(models=tmp_path / "gone"))
    assert [fault.status for fault in faults] == [FAIL]


def test_a_damaged_bundle(tiny_models: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_models, tmp_path, dirs_exist_ok=True)
    found, _ = bundles.found_bundles(config(models=tmp_path))
    tokenizer = found[0].directory / found[0].manifest.tokenizer.file
    tokenizer.write_bytes(tokenizer.read_bytes() + b" ")
    assert "damaged" in only(bundles.bundles(config(), found, loads=False)).value
    (found[0].directory / "manifest.json").write_text("{")
    assert [fault.status for fault in bundles.found_bundles(config(models=tmp_path))[1]] == [FAIL]


def test_pairs_that_two_models_translate(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_tiny_bundle(tmp_path / name / "1", name=name)
    found, _ = bundles.found_bundles(config(models=tmp_path))
    shared = only(bundles.pairs(found))
    assert (shared.status, shared.value) == (WARN, "en-de is translated by one and two")


@pytest.fixture
def doctor(tiny_models: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str]]:
    def run(*arguments: str) -> tuple[Any, str]:
        ports = ("--port", "0", "--metrics-port", "0", "--admin-port", "-1")
        code = run_command(("doctor", "--models", str(tiny_models), *ports, *arguments))
        return code, capsys.readouterr().out

    return run


def test_a_line_each_and_the_exit_code(doctor: Callable[..., tuple[Any, str]]) -> None:
    code, out = doctor()
    assert code == 0, out
    assert {line.split()[0] for line in out.splitlines()} <= {"ok", "warn"}
    assert {"cpu", "kernels", "memory", "onnxruntime", "port", "bundle"} <= {
        line.split()[1] for line in out.splitlines()
    }
    code, out = doctor("--api-keys", "/no/such/file")
    assert code == 1
    assert "fail  api keys     /no/such/file" in out


def test_json_for_programs(doctor: Callable[..., tuple[Any, str]]) -> None:
    code, out = doctor("--json", "--models", "/no/such/folder")
    assert code == 1
    (failed,) = [finding for finding in json.loads(out) if finding["status"] == "fail"]
    assert failed["what"] == "bundle"
    assert "/no/such/folder" in failed["value"]


def test_advice_is_a_sentence_of_its_own() -> None:
    assert Finding(WARN, "clock", "late", "set it.").line == "warn  clock        late. Set it."
    assert Finding(OK, "clock", "right").line == "ok    clock        right."
