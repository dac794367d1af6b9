"""Each extra of pyproject.toml installs all that its commands need."""

import ast
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from export.command_group import EXTRAS_OF_PACKAGES
from service.cli import main as command_line
from tests.export.extras import packages_of, run_with_only
from tests.patience import patient
from tests.servers import REPOSITORY

# What is imported first where an extra is used. A module imports at its head what it cannot do without.
ENTRIES = {
    "cpu": ("export.cli", "service.server.server", *command_line.MODULES.values()),
    "cpu,bulk": ("service.bulk.parquet",),
    "cpu,convert": ("export.convert", "export.doctor", "export.inspection", "export.listed_bundle"),
    "cpu,export": ("export.trace", "export.training.run", "export.training.command", "export.training.scoring"),
    "cpu,hub": ("export.hub", "huggingface_hub"),
    "cpu,otel": ("service.observe.tracing", "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"),
    "cpu,ray": ("service.bulk.ray_data",),
    "cpu,stores": ("service.bundle.transfer.store", "fsspec", "obstore"),
}
NOT_INSTALLED = {"gpu"}  # CUDA's libraries take gigabytes; the modules are those of cpu
OWN = ("service", "export", "dragoman_client")


def test_all_extras_are_here() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    named = {extra for extras in ENTRIES for extra in extras.split(",")}
    assert named | NOT_INSTALLED == set(project["optional-dependencies"])


@pytest.mark.parametrize("extras", ENTRIES)
def test_what_modules_import_is_installed(extras: str) -> None:
    found = {package: module for entry in ENTRIES[extras] for package, module in third_parties(entry)}
    missing = {package: module for package, module in found.items() if package not in packages_of(extras)}
    assert missing == {}


@pytest.mark.parametrize(("package", "extras"), EXTRAS_OF_PACKAGES.items())
def test_the_advice_for_a_missing_package_installs_it(package: str, extras: str) -> None:
    assert package in packages_of(extras)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, REPOSITORY / "client", REPOSITORY)
    return folder


@pytest.mark.full
@pytest.mark.timeout(patient(1800))
@pytest.mark.parametrize("extras", ENTRIES)
def test_an_environment_of_its_own(extras: str, wheels: Path, tmp_path: Path) -> None:
    """Takes packages from the index that pip is set up for; kernels are compiled once."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    (client,), (service,) = wheels.glob("dragoman_client-*.whl"), wheels.glob("dragoman-*.whl")
    pip(python, "install", "--constraint", REPOSITORY / "constraints.txt", client, f"{service}[{extras}]")
    imports = f"import {', '.join(ENTRIES[extras])}"
    subprocess.run([python, "-P", "-c", imports], check=True, timeout=patient(120), cwd=tmp_path)
    models = REPOSITORY / "models"
    if "convert" in extras:
        models = tmp_path / "models"
        convert = ("convert", REPOSITORY / "checkpoints/en-hi", "--precision", "int8", "-o", models / "en-hi/1")
        subprocess.run([python, "-P", "-m", "export", *convert], check=True, timeout=patient(300), cwd=tmp_path)
    (tmp_path / "in.txt").write_text("Good morning.\n", encoding="utf-8")
    bulk = ("bulk", "in.txt", "out.txt", "--from", "en", "--to", "hi", "--models", models, "--num-threads", "1")
    subprocess.run([python.with_name("dragoman"), *bulk], check=True, timeout=patient(120), cwd=tmp_path)
    assert "सु" in (tmp_path / "out.txt").read_text("utf-8")  # of "good" and of "good morning"


def test_an_import_too_many_is_found(tmp_path: Path) -> None:
    """What the fault of a conversion that needed sacrebleu looked like."""
    ended = run_with_only("cpu,convert", "import export.listed_bundle; import sacrebleu", ())
    assert "No module named 'sacrebleu'" in ended.stderr
    assert "sacrebleu" in {package for package, _ in third_parties("export.training.scoring")}


def pip(python: object, *arguments: object) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run([*map(str, command)], check=True, timeout=patient(1200))


def third_parties(entry: str) -> Iterator[tuple[str, str]]:
    """Yield packages that are imported when `entry` is, each with the module that does so."""
    seen, waiting = set[str](), [(entry, "the test")]
    while waiting:
        module, importer = waiting.pop()
        package = module.partition(".")[0]
        if package not in {*OWN, *sys.stdlib_module_names}:
            yield package, importer
        elif module not in seen and (path := source_of(module)):
            seen.add(module)
            waiting += [(name, module) for name in imported(path)]


def source_of(module: str) -> Path | None:
    """Return a module's file; `None` if it is a name in one."""
    root = REPOSITORY / "client" if module.startswith("dragoman_client") else REPOSITORY
    base = root.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def imported(path: Path) -> list[str]:
    """Return what a module imports at its head: neither in functions, nor for type checkers only."""
    names: list[str] = []
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.Import():
                names += [each.name for each in node.names]
            case ast.ImportFrom(module=str(module)):
                names += [module, *(f"{module}.{each.name}" for each in node.names)]
    return names
