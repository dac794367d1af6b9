"""Static checks of the Dockerfile, which need no build."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import service
from tests.patience import patient
from tests.servers import REPOSITORY

HADOLINT = Path(sys.executable).with_name("hadolint")
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
SERVERS = ("cpu", "cuda")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
CODE_AND_MODELS = f"{PROJECT['license']} AND CC-BY-4.0"


@dataclass(frozen=True)
class Instruction:
    keyword: str
    value: str


def instructions(dockerfile: str, target: str) -> Iterator[Instruction]:
    """Return the instructions that apply to an image, from its base on: its stage's and those of its FROM stages."""
    text = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    stages: dict[str, tuple[str, list[Instruction]]] = {}
    name = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        keyword, value = line.split(None, 1)
        if keyword == "FROM":
            parent, _, name = value.partition(" AS ")
            stages[name] = (parent, [])
        elif name:
            stages[name][1].append(Instruction(keyword, value))
    chain = [target]
    while stages[chain[-1]][0] in stages:
        chain.append(stages[chain[-1]][0])
    for stage in reversed(chain):
        yield from stages[stage][1]


def last(dockerfile: str, target: str, keyword: str) -> str:
    return ([i.value for i in instructions(dockerfile, target) if i.keyword == keyword] or [""])[-1]


@pytest.mark.parametrize("target", SERVERS)
def test_a_servers_image_runs_as_nobody_and_tells_its_health(target: str) -> None:
    """A number as user, which Kubernetes can tell from root; the exec form, as there is no shell; SIGTERM drains."""
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last(DOCKERFILE, target, "USER"))
    assert re.search(r'--start-period=\d+s .*CMD \["', last(DOCKERFILE, target, "HEALTHCHECK"))
    assert last(DOCKERFILE, target, "STOPSIGNAL") == "SIGTERM"
    assert last(DOCKERFILE, target, "ENTRYPOINT") == '["dragoman", "serve"]'


def test_the_targets_and_the_default() -> None:
    stages = re.findall(r"^FROM .* AS (\S+)$", DOCKERFILE, re.MULTILINE)
    assert {"cpu", "cuda", "export"} < set(stages)
    assert stages[-1] == "cpu"


def test_torch_is_in_no_server() -> None:
    for target in SERVERS:
        for copied in [i.value for i in instructions(DOCKERFILE, target) if i.keyword == "COPY"]:
            assert re.match(
                r"--from=(dependencies|bundles|sbom)-(cpu|cuda) |--from=(package|notices) |--chmod=644 deploy/", copied
            )
        extras = re.findall(r"'\.\[(.*)\]'", last(DOCKERFILE, f"dependencies-{target}", "RUN"))
        assert extras == [{"cpu": "cpu,otel,stores", "cuda": "gpu,otel,stores"}[target]]


def test_licences_of_code_and_models_come_along_and_are_named() -> None:
    for target, licences in (("cpu", CODE_AND_MODELS), ("cuda", CODE_AND_MODELS), ("export", PROJECT["license"])):
        labels = " ".join(each.value for each in instructions(DOCKERFILE, target) if each.keyword == "LABEL")
        assert re.findall(r'image\.licenses="(.*?)"', labels)[-1] == licences
        copied = [each.value for each in instructions(DOCKERFILE, target) if each.keyword == "COPY"]
        assert any(each.startswith("--from=notices ") for each in copied)
    for checkpoint in (REPOSITORY / "checkpoints").iterdir():
        assert (checkpoint / "NOTICE").read_text().endswith("are published under CC-BY 4.0.\n")
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert {"!LICENSE", "!THIRD_PARTY.md", "!checkpoints"} <= set(ignored)


def test_old_builders_can_build_it() -> None:
    assert not re.search(r"^# syntax=|<<|--link|@sha256:", DOCKERFILE, re.MULTILINE)
    stages = re.findall(r"^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)
    assert {parent for parent, _ in stages} - {name for _, name in stages} == {"${PYTHON_IMAGE}"}


def test_only_the_kernels_are_made_on_the_builders_platform() -> None:
    assert re.findall(r"^FROM --platform=(\S+) \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE) == [
        ("${BUILDPLATFORM}", "kernels")
    ]


def test_no_version_is_written_twice() -> None:
    assert not re.search(
        r"python3\.\d|" + re.escape(service.__version__), re.sub(r"^ARG .*|^#.*", "", DOCKERFILE, flags=re.M)
    )
    assert re.findall(r"^ARG (\w+)=(?!\"\")", DOCKERFILE, re.MULTILINE) == ["PYTHON_IMAGE"]


def test_compiled_python_tells_its_source_by_a_hash() -> None:
    for target in SERVERS:
        variables = [each.value for each in instructions(DOCKERFILE, f"dependencies-{target}") if each.keyword == "ENV"]
        assert any("SOURCE_DATE_EPOCH=" in each for each in variables)


def test_what_is_installed_is_pinned() -> None:
    for command in re.findall(r"\binstall (.*)", DOCKERFILE):
        assert command.startswith("--constraint constraints.txt ")


def test_hadolint_has_nothing_to_say(tmp_path: Path) -> None:
    assert hadolint(REPOSITORY / "Dockerfile") == []
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && pip install numpy\n")
    assert {"DL3003", "DL3006", "DL3013"} < set(hadolint(tmp_path / "Dockerfile"))


def hadolint(dockerfile: Path) -> list[str]:
    """Return the hadolint rules that the Dockerfile violates."""
    run = subprocess.run(
        [HADOLINT, "--no-color", dockerfile], capture_output=True, text=True, timeout=patient(30), check=False
    )
    assert run.returncode == bool(run.stdout), run.stderr
    return re.findall(r" (DL\d+|SC\d+) ", run.stdout)
